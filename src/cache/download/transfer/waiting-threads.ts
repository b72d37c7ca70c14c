import { availableParallelism } from 'node:os'
import { planThreads } from './plan-threads.js'
import { TransferThread } from './transfer-thread.js'

/**
 * Threads that are started while a source is still being listed, as soon as it is clear that they will be of use: when
 * the first object may be fetched they have loaded their code.
 */
export class WaitingThreads {
  #threads: TransferThread[] = []

  /** How many wait. */
  get count(): number {
    return this.#threads.length
  }

  /** Starts as many as what is listed so far is worth. */
  expect(left: { readonly files: number; readonly bytes: number; readonly concurrency: number }): void {
    const wanted = planThreads({ ...left, cores: availableParallelism() })
    while (this.#threads.length < wanted) this.#threads.push(new TransferThread())
  }

  /** One of them, or a new one. */
  take(): TransferThread {
    return this.#threads.pop() ?? new TransferThread()
  }

  /** Ends those that nobody took. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.splice(0).map((thread) => thread.dismiss()))
  }
}
