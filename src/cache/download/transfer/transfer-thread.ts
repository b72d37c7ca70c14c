import { packFailure } from '../../../failure/failure-wire.js'
import { JobThread } from '../../../platform/job-threads.js'
import type { SourceAccess } from '../../../sources/source.js'
import type { ByteRange } from '../../arrivals/block-set.js'
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

/** A thread that transfers objects over its own connections. It starts to load its code as soon as it is created. */
export class TransferThread {
  counts: TransferCounts = { receivedBytes: 0, retries: 0, throttled: 0 }
  readonly #thread: JobThread<TransferTask, Value, ToWorker, FromWorker>
  #work: ThreadWork | undefined

  constructor() {
    this.#thread = new JobThread(WORKER_FILE, {
      resourceLimits: RESOURCE_LIMITS,
      onWord: (word) => this.#hear(word),
      onChange: () => this.#work?.onChange(),
    })
  }

  /** Number of tasks that have not ended. */
  get jobCount(): number {
    return this.#thread.jobCount
  }

  /** Tells the thread which source to read. Call once, before the first task. */
  begin(work: ThreadWork): void {
    this.#work = work
    this.#thread.tell({ kind: 'begin', setup: work.setup })
  }

  /** Fails if the thread dies. */
  async run(task: TransferTask): Promise<Value> {
    return this.#thread.run(task)
  }

  /** A reader waits for this object, or for a range of it. */
  hurry(key: string, range: ByteRange | undefined): void {
    if (this.#thread.jobCount > 0) this.#thread.tell({ kind: 'hurry', key, range })
  }

  /** Fails the running tasks. */
  abort(): void {
    this.#thread.tell({ kind: 'stop' })
  }

  async close(): Promise<void> {
    this.#thread.tell({ kind: 'close' })
    const patience = setTimeout(
      () => void this.#thread.stop(new Error('a thread that transfers objects did not close in time')),
      CLOSE_PATIENCE_MS,
    )
    await this.#thread.ended
    clearTimeout(patience)
  }

  /** Ends a thread that never got a task. */
  dismiss(): Promise<void> {
    return this.#thread.stop()
  }

  #hear(word: FromWorker): void {
    if (word.kind === 'ask') {
      void this.#answer(word)
      return
    }
    if (word.news !== undefined) this.#work!.access.onNews?.(word.news)
    this.counts = word.counts
  }

  async #answer({ id, question }: Extract<FromWorker, { kind: 'ask' }>): Promise<void> {
    try {
      this.#thread.tell({ kind: 'answer', id, answer: await this.#work!.access.answer?.(question) })
    } catch (error) {
      this.#thread.tell({ kind: 'no-answer', id, failure: packFailure(error) })
    }
  }
}
