import { DscError } from '../../failure/dsc-error.js'
import { BackgroundThread } from '../../platform/background-thread.js'
import type { ReaderData, ReaderJob, ReaderResult } from './reader-thread.js'

/** Threads that read, copy and shuffle, so that the feed's own thread never waits for a disk. */
export interface ReaderPool {
  run(job: ReaderJob): Promise<ReaderResult>
  close(): Promise<void>
}

interface Waiter {
  resolve(result: ReaderResult): void
  reject(error: Error): void
}

/** One message each way: job `id`, and what came of it. */
interface Posted {
  readonly id: number
  readonly job: ReaderJob
}
interface Answered {
  readonly id: number
  readonly result: ReaderResult
}

/** One thread and the jobs that it has. */
class ReaderThread {
  readonly #waiting = new Map<number, Waiter>()
  readonly #thread: BackgroundThread<Posted, Answered>
  #nextId = 0

  constructor(data: ReaderData) {
    this.#thread = new BackgroundThread(new URL('./reader-thread.js', import.meta.url), {
      data,
      onReply: ({ id, result }: Answered) => this.#answer(id, result),
      onFailure: (error) => this.failAll(error),
    })
  }

  get jobCount(): number {
    return this.#waiting.size
  }

  run(job: ReaderJob): Promise<ReaderResult> {
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#thread.ref()
      this.#thread.post({ id, job })
    })
  }

  failAll(error: Error): void {
    for (const waiter of this.#waiting.values()) waiter.reject(error)
    this.#waiting.clear()
    this.#thread.unref()
  }

  stop(): Promise<void> {
    return this.#thread.stop()
  }

  #answer(id: number, result: ReaderResult): void {
    const waiter = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (this.#waiting.size === 0) this.#thread.unref()
    if (result.kind === 'failed') waiter?.reject(toFailure(result.code, result.message))
    else waiter?.resolve(result)
  }
}

/** Starts `threads` reader threads (1 or more). */
export function openReaderPool(data: ReaderData, threads: number): ReaderPool {
  return new Pool(Array.from({ length: threads }, () => new ReaderThread(data)))
}

class Pool implements ReaderPool {
  readonly #threads: readonly ReaderThread[]
  #isClosed = false

  constructor(threads: readonly ReaderThread[]) {
    this.#threads = threads
  }

  run(job: ReaderJob): Promise<ReaderResult> {
    if (this.#isClosed) return Promise.reject(closing())
    return this.#threads.reduce((least, each) => (each.jobCount < least.jobCount ? each : least)).run(job)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#threads.map((thread) => thread.stop()))
    for (const thread of this.#threads) thread.failAll(closing())
  }
}

const closing = () => new DscError('FEED_GONE', 'the feed is closing')

function toFailure(code: string, message: string): Error {
  if (code !== 'ENOSPC') return new Error(`a reader thread failed: ${message}`)
  return new DscError('FEED_MEMORY', `the file system of the arena is full: ${message}`, {
    hint: 'a smaller --memory, or a larger /dev/shm (docker run --shm-size)',
  })
}
