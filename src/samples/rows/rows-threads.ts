import { availableParallelism } from 'node:os'
import { DscError, type FailureCode } from '../../failure/dsc-error.js'
import { BackgroundThread } from '../../platform/background-thread.js'
import { describeDiskFailure } from '../../platform/disk-failure.js'
import type { RowsFailure, RowsJob, RowsMessage, RowsResult } from './rows-thread.js'

/** Maximum number of threads: more would hold more row groups in memory at a time than a node can spare. */
export const ROWS_THREADS = Math.min(4, Math.max(1, availableParallelism()))
/** Maximum heap of a thread for JavaScript objects, in MiB, without bytes of rows. A crafted file fails beyond it. */
const HEAP_MIB = 4096
/** One column of a row group takes seconds; a crafted file can keep a decoder busy for days. */
const DEFAULT_PATIENCE_MS = 300_000

/** How to run jobs. */
interface RowsJobsOptions {
  readonly onResult: (place: number, result: RowsResult) => void
  /** How long a job may be silent before it counts as failed, in ms. Default 5 minutes. */
  readonly patienceMs?: number | undefined
}

/**
 * Runs jobs in its own threads, one per thread at a time, and passes results to `onResult` with their places. The first
 * failure ends it once running jobs have ended; waiting jobs are not started.
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

/** One thread that runs one job at a time; after abandoning a job it accepts no other. */
export class RowsThread {
  readonly #patienceMs: number
  readonly #thread: BackgroundThread<RowsJob, RowsMessage>
  #settle: { resolve(result: RowsResult): void; reject(error: unknown): void } | undefined
  #job: RowsJob | undefined
  /** The part of the file being decoded. */
  #where = 'its footer'
  #watch: NodeJS.Timeout | undefined

  /** `patienceMs`: see `RowsJobsOptions`. */
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

/** Explains a thread that ended by itself because a file needed more memory than allowed. */
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
