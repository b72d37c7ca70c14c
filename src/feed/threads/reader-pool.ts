import { DscError } from '../../failure/dsc-error.js'
import { BackgroundThread } from '../../platform/background-thread.js'
import type { ReaderData, ReaderJob, ReaderOrder, ReaderResult } from './reader-thread.js'

/** Threads that read, copy and shuffle, so that the feed's own thread never waits for a disk. */
export interface ReaderPool {
  run(job: ReaderJob): Promise<ReaderResult>
  close(): Promise<void>
}

interface Waiter {
  resolve(result: ReaderResult): void
  reject(error: Error): void
}

/** Result of job `id`. */
interface Answered {
  readonly id: number
  readonly result: ReaderResult
}

/** One thread and its jobs. */
class ReaderThread {
  readonly #waiting = new Map<number, Waiter>()
  readonly #thread: BackgroundThread<ReaderOrder, Answered>
  #nextId = 0

  constructor() {
    this.#thread = new BackgroundThread(new URL('../../reader-thread.cjs', import.meta.url), {
      data: undefined,
      onReply: ({ id, result }: Answered) => this.#answer(id, result),
      onFailure: (error) => this.failAll(error),
    })
  }

  get jobCount(): number {
    return this.#waiting.size
  }

  /** Sets what to read. Call once, before the first job. */
  begin(data: ReaderData): void {
    this.#thread.post({ kind: 'begin', data })
  }

  run(job: ReaderJob): Promise<ReaderResult> {
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#thread.ref()
      this.#thread.post({ kind: 'job', id, job })
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

/** Reader threads that load their code, some 100 ms each, while their data is still being looked for. */
export class WaitingReaders {
  readonly #threads: readonly ReaderThread[]

  /** Starts `threads` of them (1 or more). */
  constructor(threads: number) {
    this.#threads = Array.from({ length: threads }, () => new ReaderThread())
  }

  /** Sets what they read. Call once. */
  begin(data: ReaderData): ReaderPool {
    for (const thread of this.#threads) thread.begin(data)
    return new Pool(this.#threads)
  }

  /** Ends them if nothing is read after all. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.stop()))
  }
}

/** Starts `threads` reader threads (1 or more). */
export function openReaderPool(data: ReaderData, threads: number): ReaderPool {
  return new WaitingReaders(threads).begin(data)
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
