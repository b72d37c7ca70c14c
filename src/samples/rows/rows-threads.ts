import { availableParallelism } from 'node:os'
import { DscError, type FailureCode } from '../../failure/dsc-error.js'
import { BackgroundThread } from '../../platform/background-thread.js'
import { describeDiskFailure } from '../../platform/disk-failure.js'
import type { RowsFailure, RowsJob, RowsMessage, RowsResult } from './rows-thread.js'

/** More threads would read more row groups into memory at a time than a node wants to give away. */
export const ROWS_THREADS = Math.min(4, Math.max(1, availableParallelism()))
/** Of JavaScript objects in one thread, MiB; bytes of rows are not among them. What a crafted file wants beyond ends there. */
const HEAP_MIB = 4096
/** One column of a row group takes seconds; a crafted file can make a decoder run on for days. */
const DEFAULT_PATIENCE_MS = 300_000

/** How jobs are done. */
interface RowsJobsOptions {
  readonly onResult: (place: number, result: RowsResult) => void
  /** A job that is silent for so long, ms, has failed. Default 5 minutes. */
  readonly patienceMs?: number | undefined
}

/**
 * Does jobs in threads of their own, as many at a time as there are threads, and hands results to `onResult` with
 * their places. Ends with the first failure, when the jobs that run have ended; those that wait are not begun.
 */
export async function runRowsJobs(jobs: readonly RowsJob[], options: RowsJobsOptions): Promise<void> {
  const { onResult, patienceMs } = options
  const count = Math.min(jobs.length, ROWS_THREADS)
  let next = 0
  const failures = new Map<number, unknown>()
  const work = async () => {
    const thread = new RowsThread(patienceMs)
    let place = 0
    try {
      while (next < jobs.length && failures.size === 0) {
        place = next++
        onResult(place, await thread.run(jobs[place]!))
      }
    } catch (error) {
      failures.set(place, error)
    } finally {
      await thread.stop()
    }
  }
  await Promise.all(Array.from({ length: count }, work))
  if (failures.size > 0) throw failures.get(Math.min(...failures.keys())) // the same every time
}

/** One thread, one job at a time; after a job that was given up it takes no other one. */
export class RowsThread {
  readonly #patienceMs: number
  readonly #thread: BackgroundThread<RowsJob, RowsMessage>
  #settle: { resolve(result: RowsResult): void; reject(error: unknown): void } | undefined
  #job: RowsJob | undefined
  /** What of the file is being decoded. */
  #where = 'its footer'
  #watch: NodeJS.Timeout | undefined

  /** `patienceMs` as in `RowsJobsOptions`. */
  constructor(patienceMs = DEFAULT_PATIENCE_MS) {
    this.#patienceMs = patienceMs
    this.#thread = new BackgroundThread(new URL('../../rows-thread.cjs', import.meta.url), {
      data: undefined,
      onReply: (message: RowsMessage) => this.#hear(message),
      onFailure: (error) => this.#settle?.reject(explainEnd(error, this.#job?.shown, this.#where)),
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
    })
  }

  async run(job: RowsJob): Promise<RowsResult> {
    this.#job = job
    this.#where = 'its footer'
    const result = new Promise<RowsResult>((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    this.#thread.ref()
    this.#thread.post(job)
    this.#beginWatch()
    try {
      return await result
    } finally {
      clearTimeout(this.#watch)
      this.#thread.unref()
    }
  }

  stop(): Promise<void> {
    return this.#thread.stop()
  }

  #beginWatch(): void {
    clearTimeout(this.#watch)
    this.#watch = setTimeout(() => {
      const reason = `${this.#where} takes longer than ${this.#patienceMs / 1000} s to decode`
      this.#settle?.reject(unreadable(this.#job!.shown, reason))
    }, this.#patienceMs)
  }

  #hear(message: RowsMessage): void {
    if (message.kind === 'column') {
      this.#where = message.what
      this.#beginWatch()
    } else if (message.kind === 'failed') this.#settle?.reject(toError(message.failure, this.#job!))
    else this.#settle?.resolve(message)
  }
}

function toError({ isDscError, code, message, hint }: RowsFailure, job: RowsJob): unknown {
  if (isDscError) return new DscError(code as FailureCode, message, { hint })
  const error = Object.assign(new Error(`${job.shown}: ${message}`), { code })
  return describeDiskFailure(error, job.shown)
}

/** A thread ends by itself where a file makes it take more memory than it may. */
function explainEnd(error: Error, shown: string | undefined, where: string): unknown {
  const isMemory = (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY'
  return isMemory
    ? unreadable(shown ?? 'a Parquet file', `${where} takes more than ${HEAP_MIB} MiB to decode`)
    : error
}

function unreadable(shown: string, reason: string): DscError {
  return new DscError('COPY_DAMAGED', `${shown} is no Parquet file that can be read: ${reason}`, {
    hint: 'fetch the file again (dsc verify --repair), or write it anew with smaller row groups',
  })
}
