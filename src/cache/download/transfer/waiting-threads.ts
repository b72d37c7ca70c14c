import { availableParallelism } from 'node:os'
import { planThreads } from './plan-threads.js'
import { TransferThread } from './transfer-thread.js'

/** Threads to start before the listing: no more than a small dataset is worth, leaving a core for the lister. */
const EARLY = 2

/**
 * Threads started while a source is still being listed, so that their code is loaded when the first object can be
 * fetched.
 */
export class WaitingThreads {
  #threads: TransferThread[] = []

  /** Number of waiting threads. */
  get count(): number {
    return this.#threads.length
  }

  /** Starts a few before anything is listed: one takes some 40 ms of a processor that has little else to do. */
  begin(): void {
    this.#grow(Math.max(1, Math.min(EARLY, availableParallelism() - 1)))
  }

  /** Starts as many threads as the listing so far is worth. */
  expect(left: { readonly files: number; readonly bytes: number; readonly concurrency: number }): void {
    this.#grow(planThreads({ ...left, cores: availableParallelism() }))
  }

  /** Returns a waiting thread, or a new one. */
  take(): TransferThread {
    return this.#threads.pop() ?? new TransferThread()
  }

  #grow(count: number): void {
    while (this.#threads.length < count) this.#threads.push(new TransferThread())
  }

  /** Ends the threads that were not taken. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.splice(0).map((thread) => thread.dismiss()))
  }
}
