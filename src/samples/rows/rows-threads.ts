import { availableParallelism } from 'node:os'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { describeDiskFailure } from '../../platform/disk-failure.js'
import { JobThread, spreadJobs } from '../../platform/job-threads.js'
import type { RowsJob, RowsResult } from './rows-thread.js'

const THREAD = new URL('../../rows-thread.cjs', import.meta.url)

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
export function runRowsJobs(
  jobs: readonly RowsJob[],
  { onResult, patienceMs }: RowsJobsOptions,
): Promise<void> {
  return spreadJobs(jobs, { threads: ROWS_THREADS, start: () => new RowsThread(patienceMs), onResult })
}

/** One thread that runs one job at a time; after abandoning a job it accepts no other. */
export class RowsThread {
  readonly #patienceMs: number
  readonly #thread: JobThread<RowsJob, RowsResult, never, string>
  /** The part of the file being decoded. */
  #where = 'its footer'
  #watch: NodeJS.Timeout | undefined

  /** `patienceMs`: see `RowsJobsOptions`. */
  constructor(patienceMs = DEFAULT_PATIENCE_MS) {
    this.#patienceMs = patienceMs
    this.#thread = new JobThread(THREAD, {
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
      onWord: (where) => this.#enter(where),
    })
  }

  async run(job: RowsJob): Promise<RowsResult> {
    this.#enter('its footer')
    const late = new Promise<never>((_, reject) => {
      this.#watch = setTimeout(() => {
        const reason = `${this.#where} takes longer than ${this.#patienceMs / 1000} s to decode`
        reject(unreadable(job.shown, reason))
      }, this.#patienceMs)
    })
    try {
      return await Promise.race([this.#thread.run(job), late])
    } catch (error) {
      throw isDscError(error) ? error : explain(error as NodeJS.ErrnoException, job.shown, this.#where)
    } finally {
      clearTimeout(this.#watch)
      this.#watch = undefined
    }
  }

  stop(): Promise<void> {
    return this.#thread.stop()
  }

  /** Begins a part of a file, which has the whole patience again. */
  #enter(where: string): void {
    this.#where = where
    this.#watch?.refresh()
  }
}

/** Explains a failure of the system, or of a thread that ended because a file needed more memory than allowed. */
function explain(error: NodeJS.ErrnoException, shown: string, where: string): unknown {
  if (error.code === 'ERR_WORKER_OUT_OF_MEMORY')
    return unreadable(shown, `${where} takes more than ${HEAP_MIB} MiB to decode`)
  return describeDiskFailure(
    Object.assign(new Error(`${shown}: ${error.message}`), { code: error.code }),
    shown,
  )
}

function unreadable(shown: string, reason: string): DscError {
  return new DscError('COPY_DAMAGED', `${shown} is no Parquet file that can be read: ${reason}`, {
    hint: 'fetch the file again (dsc verify --repair), or write it anew with smaller row groups',
  })
}
