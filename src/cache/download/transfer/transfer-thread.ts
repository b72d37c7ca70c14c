import { BackgroundThread } from '../../../platform/background-thread.js'
import type { SourceAccess } from '../../../sources/source.js'
import type { ByteRange } from '../../arrivals/block-set.js'
import { packFailure, unpackFailure } from './failure-wire.js'
import type { TransferCounts, TransferResults, TransferTask } from './transfer-task.js'
import type { FromWorker, ToWorker, WorkerSetup } from './worker-wire.js'

const WORKER_FILE = new URL('../../../transfer-worker.cjs', import.meta.url)
/** An idle thread ends by itself when closed; after this time it is stopped, in ms. */
const CLOSE_PATIENCE_MS = 5000
/** Chunks live outside the heap, so a small young generation keeps threads small without slowing them down. */
const RESOURCE_LIMITS = { maxYoungGenerationSizeMb: 8 }

/** Passed to a thread when it is to read a source. */
interface ThreadWork {
  readonly setup: WorkerSetup
  readonly access: SourceAccess
  readonly onChange: () => void
}

type Value = TransferResults[TransferTask['kind']]

interface Pending {
  readonly resolve: (value: Value) => void
  readonly reject: (error: unknown) => void
}

/** A thread that transfers objects over its own connections. It starts to load its code as soon as it is created. */
export class TransferThread {
  counts: TransferCounts = { receivedBytes: 0, retries: 0, throttled: 0 }
  readonly #worker: BackgroundThread<ToWorker, FromWorker>
  readonly #pending = new Map<number, Pending>()
  #outbox: { readonly id: number; readonly task: TransferTask }[] = []
  #lastId = 0
  #failure: Error | undefined
  #work: ThreadWork | undefined

  constructor() {
    this.#worker = new BackgroundThread(WORKER_FILE, {
      data: undefined,
      resourceLimits: RESOURCE_LIMITS,
      onReply: (message) => this.#hear(message),
      onFailure: (cause) => this.#fail(cause),
    })
  }

  /** Number of tasks that have not ended. */
  get pendingTasks(): number {
    return this.#pending.size
  }

  /** Tells the thread which source to read. Call once, before the first task. */
  begin(work: ThreadWork): void {
    this.#work = work
    this.#worker.ref()
    this.#worker.post({ kind: 'begin', setup: work.setup })
  }

  /** Tasks of one event-loop turn are sent together. They fail if the thread dies. */
  run(task: TransferTask): Promise<Value> {
    return new Promise((resolve, reject) => {
      if (this.#failure) {
        reject(this.#failure)
        return
      }
      this.#lastId += 1
      this.#pending.set(this.#lastId, { resolve, reject })
      if (this.#outbox.length === 0) queueMicrotask(() => this.#flush())
      this.#outbox.push({ id: this.#lastId, task })
    })
  }

  /** A reader waits for this object, or for a range of it. */
  hurry(key: string, range: ByteRange | undefined): void {
    if (this.#pending.size === 0) return
    this.#flush() // the hurried task may still be in the outbox
    this.#worker.post({ kind: 'hurry', key, range })
  }

  /** Fails the running tasks. */
  abort(): void {
    this.#worker.post({ kind: 'stop' })
  }

  async close(): Promise<void> {
    this.#worker.post({ kind: 'close' })
    const patience = setTimeout(() => void this.#worker.stop(), CLOSE_PATIENCE_MS)
    await this.#worker.ended
    clearTimeout(patience)
    if (this.#pending.size > 0) this.#fail(new Error('it did not close in time'))
  }

  /** Ends a thread that never got a task. */
  dismiss(): Promise<void> {
    return this.#worker.stop()
  }

  #flush(): void {
    const tasks = this.#outbox
    if (tasks.length === 0) return
    this.#outbox = []
    this.#worker.post({ kind: 'tasks', tasks })
  }

  #hear(message: FromWorker): void {
    const { access, onChange } = this.#work!
    if (message.kind === 'ask') {
      void this.#answer(access, message)
      return
    }
    if (message.news !== undefined) access.onNews?.(message.news)
    this.counts = message.counts
    for (const result of message.results) {
      const task = this.#pending.get(result.id)
      this.#pending.delete(result.id)
      if ('failure' in result) task?.reject(unpackFailure(result.failure))
      else task?.resolve(result.value)
    }
    onChange()
  }

  async #answer(access: SourceAccess, { id, question }: Extract<FromWorker, { kind: 'ask' }>): Promise<void> {
    try {
      this.#worker.post({ kind: 'answer', id, answer: await access.answer?.(question) })
    } catch (error) {
      this.#worker.post({ kind: 'no-answer', id, failure: packFailure(error) })
    }
  }

  /** Fails the thread's tasks; the first cause counts. */
  #fail(cause: Error): void {
    this.#failure ??= new Error(`a thread that transfers objects ended early: ${cause.message}`, { cause })
    for (const { reject } of this.#pending.values()) reject(this.#failure)
    this.#pending.clear()
  }
}
