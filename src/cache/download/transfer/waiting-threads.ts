import { availableParallelism } from 'node:os'
import { planThreads } from './plan-threads.js'
import { TransferThread } from './transfer-thread.js'

/** No more than a small dataset is worth, and a core is left to whoever lists. */
const EARLY = 2

/**
 * Threads that are started while a source is still being listed: when the first object may be fetched they have loaded
 * their code.
 */
export class WaitingThreads {
  #threads: TransferThread[] = []

  /** How many wait. */
  get count(): number {
    return this.#threads.length
  }

  /** Starts a few while nothing is listed yet: one takes some 40 ms of a processor that has little else to do. */
  begin(): void {
    this.#grow(Math.max(1, Math.min(EARLY, availableParallelism() - 1)))
  }

  /** Starts as many as what is listed so far is worth. */
  expect(left: { readonly files: number; readonly bytes: number; readonly concurrency: number }): void {
    this.#grow(planThreads({ ...left, cores: availableParallelism() }))
  }

  /** One of them, or a new one. */
  take(): TransferThread {
    return this.#threads.pop() ?? new TransferThread()
  }

  #grow(count: number): void {
    while (this.#threads.length < count) this.#threads.push(new TransferThread())
  }

  /** Ends those that nobody took. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.splice(0).map((thread) => thread.dismiss()))
  }
}
