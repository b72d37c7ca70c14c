/**
 * A node that sends so many parts at once, and so many bytes, begins no more that nobody needs soon: of 12 parts one is
 * passed on by others soon, of 70 that share a link all end late.
 */
export const FULL = { sends: 12, bytes: 12 * 1024 * 1024 }

interface Waiter {
  readonly bytes: number
  readonly settle: (isIn: boolean) => void
}

/** What an agent sends to other nodes at once. */
export class SendRoom {
  #sends = 0
  #bytes = 0
  readonly #waiting = new Set<Waiter>()

  /** Waits for room for `patienceMs`, 0 or more, those who came first go first. False: there was none. */
  enter(bytes: number, patienceMs: number): Promise<boolean> {
    if (!this.#isFull) {
      this.force(bytes)
      return Promise.resolve(true)
    }
    return new Promise((resolve) => {
      const settle = (isIn: boolean) => {
        clearTimeout(timer)
        this.#waiting.delete(waiter)
        if (isIn) this.force(bytes)
        resolve(isIn)
      }
      const waiter = { bytes, settle }
      const timer = setTimeout(() => settle(false), patienceMs)
      this.#waiting.add(waiter)
    })
  }

  /** Takes room whether there is any or not. */
  force(bytes: number): void {
    this.#sends += 1
    this.#bytes += bytes
  }

  /** Gives back what `enter` or `force` took. */
  leave(bytes: number): void {
    this.#sends -= 1
    this.#bytes -= bytes
    for (const waiter of this.#waiting) {
      if (this.#isFull) break
      waiter.settle(true)
    }
  }

  get #isFull(): boolean {
    return this.#sends >= FULL.sends && this.#bytes >= FULL.bytes
  }
}
