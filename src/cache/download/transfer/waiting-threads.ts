import { availableParallelism } from 'node:os'
import { planThreads } from './plan-threads.js'
import { TransferThread } from './transfer-thread.js'

/** As many as load their code beside what the first question to a source takes, and no more than a small dataset is worth. */
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
    this.#grow(Math.min(EARLY, availableParallelism()))
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
