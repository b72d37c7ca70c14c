import type { GroupJob } from './rows-thread.js'
import { ROWS_THREADS, RowsThread } from './rows-threads.js'

/** Reads row groups in its own threads, one per thread at a time; the others wait their turn. */
export class GroupReader {
  readonly #idle: RowsThread[] = []
  readonly #waiting: (() => void)[] = []
  #running = 0
  #isClosed = false

  /** Reads the rows of a row group, one after the other. Rejects if the file cannot be read. */
  async read(job: Omit<GroupJob, 'kind'>): Promise<Uint8Array> {
    while (this.#running >= ROWS_THREADS) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    if (this.#isClosed) throw new Error('the feed is closing')
    this.#running += 1
    const thread = this.#idle.pop() ?? new RowsThread()
    let isSound = false
    try {
      const result = await thread.run({ kind: 'group', ...job })
      if (result.kind !== 'group') throw new Error('a thread answered another question')
      isSound = true
      return result.bytes
    } finally {
      // A failed thread may still be working.
      if (isSound && !this.#isClosed) this.#idle.push(thread)
      else await thread.stop()
      this.#running -= 1
      this.#waiting.shift()?.()
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#idle.splice(0).map((thread) => thread.stop()))
  }
}
