import { BackgroundThread } from '../../../platform/background-thread.js'
import type { SourceAccess } from '../../sources/source.js'
import type { BandwidthBucket } from './bandwidth-bucket.js'
import { packFailure, unpackFailure } from './failure-wire.js'
import type { TransferCounts, TransferEngine, TransferTask } from './transfer-task.js'
import type { FromWorker, ToWorker, WorkerSetup } from './worker-wire.js'

const WORKER_FILE = new URL('../../../transfer-worker.cjs', import.meta.url)
/** A thread that has nothing to do any more ends by itself; one that does not is ended after this time, ms. */
const CLOSE_PATIENCE_MS = 5000
/** Chunks live outside the heap, so a small young generation keeps threads small without making them slow. */
const RESOURCE_LIMITS = { maxYoungGenerationSizeMb: 8 }

interface Thread {
  readonly worker: BackgroundThread<ToWorker, FromWorker>
  readonly pending: Map<number, { resolve: (value: never) => void; reject: (error: unknown) => void }>
  outbox: { readonly id: number; readonly task: TransferTask }[]
  counts: TransferCounts
  failure: Error | undefined
}

const NOTHING: TransferCounts = { receivedBytes: 0, retries: 0, throttled: 0 }

/**
 * Does transfer tasks in `threads` threads, each with its own connections. Tasks and results go over in batches.
 * When a thread dies, its tasks fail.
 */
export function openWorkerEngine(options: {
  readonly access: SourceAccess
  readonly threads: number
  /** Most connections, over all threads. */
  readonly connections: number
  readonly stallTimeoutMs: number
  readonly bandwidth: BandwidthBucket | undefined
  readonly signal: AbortSignal
  readonly onChange: () => void
}): TransferEngine {
  const { access, stallTimeoutMs, bandwidth, signal, onChange } = options
  const threads = Array.from({ length: options.threads }, (_, index) =>
    startThread(
      {
        location: access.location,
        scheme: access.scheme,
        connections: Math.max(1, Math.floor((options.connections + index) / options.threads)),
        stallTimeoutMs,
        bandwidth,
      },
      access,
      onChange,
    ),
  )
  let lastId = 0
  const stop = () => {
    for (const { worker } of threads) worker.post({ kind: 'stop' })
  }
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  return {
    get counts() {
      const sum = { ...NOTHING }
      for (const { counts } of threads)
        for (const name of ['receivedBytes', 'retries', 'throttled'] as const) sum[name] += counts[name]
      return sum
    },
    run(task) {
      const thread = threads.reduce((best, next) => (next.pending.size < best.pending.size ? next : best))
      return new Promise((resolve, reject) => {
        if (thread.failure) {
          reject(thread.failure)
          return
        }
        lastId += 1
        thread.pending.set(lastId, { resolve, reject })
        if (thread.outbox.length === 0) queueMicrotask(() => flush(thread))
        thread.outbox.push({ id: lastId, task })
      })
    },
    async close() {
      signal.removeEventListener('abort', stop)
      await Promise.all(threads.map(closeThread))
    },
  }
}

function startThread(setup: WorkerSetup, access: SourceAccess, onChange: () => void): Thread {
  const worker = new BackgroundThread<ToWorker, FromWorker>(WORKER_FILE, {
    data: setup,
    resourceLimits: RESOURCE_LIMITS,
    onReply: (message) => {
      if (message.kind === 'ask') {
        void answer(worker, access, message)
        return
      }
      if (message.news !== undefined) access.onNews?.(message.news)
      takeReport(thread, message)
      onChange()
    },
    onFailure: (cause) => fail(thread, cause),
  })
  worker.ref()
  const thread: Thread = { worker, pending: new Map(), outbox: [], counts: NOTHING, failure: undefined }
  return thread
}

function takeReport(thread: Thread, report: Extract<FromWorker, { kind: 'report' }>): void {
  thread.counts = report.counts
  for (const result of report.results) {
    const task = thread.pending.get(result.id)
    thread.pending.delete(result.id)
    if ('failure' in result) task?.reject(unpackFailure(result.failure))
    else task?.resolve(result.value as never)
  }
}

/** Fails what the thread was to do; the first cause counts. */
function fail(thread: Thread, cause: Error): void {
  thread.failure ??= new Error(`a thread that transfers objects ended early: ${cause.message}`, { cause })
  for (const { reject } of thread.pending.values()) reject(thread.failure)
  thread.pending.clear()
}

async function answer(
  worker: Thread['worker'],
  access: SourceAccess,
  { id, question }: Extract<FromWorker, { kind: 'ask' }>,
): Promise<void> {
  try {
    worker.post({ kind: 'answer', id, answer: await access.answer?.(question) })
  } catch (error) {
    worker.post({ kind: 'no-answer', id, failure: packFailure(error) })
  }
}

function flush(thread: Thread): void {
  const tasks = thread.outbox
  thread.outbox = []
  thread.worker.post({ kind: 'tasks', tasks })
}

async function closeThread(thread: Thread): Promise<void> {
  const { worker } = thread
  worker.post({ kind: 'close' })
  const patience = setTimeout(() => void worker.stop(), CLOSE_PATIENCE_MS)
  await worker.ended
  clearTimeout(patience)
  if (thread.pending.size > 0) fail(thread, new Error('it did not close in time'))
}
