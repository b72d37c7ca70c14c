import { setTimeout as sleep } from 'node:timers/promises'

/** Lets so many in at once; and nobody, while something is done alone. */
export class Gate {
  readonly #most: number
  #inside = 0
  #isClosed = false

  constructor(most: number) {
    this.#most = most
  }

  async enter(): Promise<void> {
    while (this.#isClosed || this.#inside >= this.#most) await sleep(50)
    this.#inside += 1
  }

  leave(): void {
    this.#inside -= 1
  }

  async whileNobodyIsIn(work: () => Promise<void>): Promise<void> {
    this.#isClosed = true
    while (this.#inside > 0) await sleep(50)
    await work()
    this.#isClosed = false
  }
}
