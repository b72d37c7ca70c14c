import { DscError, isDscError } from '../../failure/dsc-error.js'
import { JobThread, leastBusy } from '../../platform/job-threads.js'
import type { MeasureFiles } from '../../samples/list-folder.js'
import type { ReaderData, ReaderJob, ReaderResult } from './reader-thread.js'

/** Threads that read, copy and shuffle, so that the feed's own thread never waits for a disk. */
export interface ReaderPool {
  run(job: ReaderJob): Promise<ReaderResult>
  close(): Promise<void>
}

/** Reader threads that load their code, some 100 ms each, while their data is still being looked for. */
export class WaitingReaders {
  readonly #threads: readonly JobThread<ReaderJob, ReaderResult, ReaderData>[]

  /** Starts `threads` of them (1 or more). */
  constructor(threads: number) {
    const url = new URL('../../reader-thread.cjs', import.meta.url)
    this.#threads = Array.from({ length: threads }, () => new JobThread(url))
  }

  /** Looks at files before it is known what to read. See `MeasureFiles`. */
  readonly measure: MeasureFiles = async (root, paths) => {
    const thread = leastBusy(this.#threads)
    const measured = thread.run({ kind: 'measure', root, paths })
    thread.flush() // the walk through the folder goes on without a pause
    const result = await measured
    if (result.kind !== 'measure') throw new Error('a reader thread answered another question')
    return result
  }

  /** Sets what they read. Call once. */
  begin(data: ReaderData): ReaderPool {
    for (const thread of this.#threads) thread.tell(data)
    let isClosed = false
    return {
      run: async (job) => {
        if (isClosed) throw closing()
        return leastBusy(this.#threads)
          .run(job)
          .catch((error: NodeJS.ErrnoException) => Promise.reject(toFailure(error)))
      },
      close: async () => {
        isClosed = true
        await this.close()
      },
    }
  }

  /** Ends them; jobs that have not ended fail. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.stop(closing())))
  }
}

/** Starts `threads` reader threads (1 or more). */
export function openReaderPool(data: ReaderData, threads: number): ReaderPool {
  return new WaitingReaders(threads).begin(data)
}

const closing = () => new DscError('FEED_GONE', 'the feed is closing')

function toFailure(error: NodeJS.ErrnoException): Error {
  if (isDscError(error)) return error
  if (error.code !== 'ENOSPC') return new Error(`a reader thread failed: ${error.message}`, { cause: error })
  return new DscError('FEED_MEMORY', `the file system of the arena is full: ${error.message}`, {
    hint: 'a smaller --memory, or a larger /dev/shm (docker run --shm-size)',
  })
}
