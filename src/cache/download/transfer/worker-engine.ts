import { Worker } from 'node:worker_threads'
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
  readonly worker: Worker
  readonly pending: Map<number, { resolve: (value: never) => void; reject: (error: unknown) => void }>
  readonly exited: Promise<unknown>
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
    for (const { worker } of threads) worker.postMessage({ kind: 'stop' } satisfies ToWorker)
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
  const worker = new Worker(WORKER_FILE, { workerData: setup, resourceLimits: RESOURCE_LIMITS })
  const thread: Thread = {
    worker,
    pending: new Map(),
    exited: new Promise((resolve) => worker.once('exit', resolve)),
    outbox: [],
    counts: NOTHING,
    failure: undefined,
  }
  const die = (reason: string, cause?: unknown) => {
    thread.failure ??= new Error(`a thread that transfers objects ended early: ${reason}`, { cause })
    for (const { reject } of thread.pending.values()) reject(thread.failure)
    thread.pending.clear()
  }
  worker.on('message', (message: FromWorker) => {
    if (message.kind === 'ask-credentials') {
      void answerCredentials(worker, access)
      return
    }
    thread.counts = message.counts
    for (const result of message.results) {
      const task = thread.pending.get(result.id)
      thread.pending.delete(result.id)
      if ('failure' in result) task?.reject(unpackFailure(result.failure))
      else task?.resolve(result.value as never)
    }
    onChange()
  })
  worker.on('error', (error: unknown) => die(error instanceof Error ? error.message : String(error), error))
  worker.on('exit', (code) => die(`exit code ${code}`))
  return thread
}

async function answerCredentials(worker: Worker, access: SourceAccess): Promise<void> {
  let answer: ToWorker
  try {
    answer = { kind: 'credentials', credentials: await access.getCredentials?.() }
  } catch (error) {
    answer = { kind: 'no-credentials', failure: packFailure(error) }
  }
  worker.postMessage(answer)
}

function flush(thread: Thread): void {
  const tasks = thread.outbox
  thread.outbox = []
  thread.worker.postMessage({ kind: 'tasks', tasks } satisfies ToWorker)
}

async function closeThread({ worker, exited }: Thread): Promise<void> {
  worker.postMessage({ kind: 'close' } satisfies ToWorker)
  const patience = setTimeout(() => void worker.terminate(), CLOSE_PATIENCE_MS)
  await exited
  clearTimeout(patience)
}
