/**
 * Above this load, a node starts no more sends that nobody needs soon. Of 12 parts in flight, one soon arrives and can
 * be passed on; of 70 that share a link, all arrive late.
 */
export const FULL = { sends: 12, bytes: 12 * 1024 * 1024 }

interface Waiter {
  readonly bytes: number
  readonly settle: (isIn: boolean) => void
}

/** The bytes that an agent sends to other nodes at the same time. */
export class SendRoom {
  #sends = 0
  #bytes = 0
  readonly #waiting = new Set<Waiter>()

  /** Waits up to `patienceMs` (0 or more) for room, first come, first served. Resolves with false if there was none. */
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

  /** Takes room even if all of it is taken. */
  force(bytes: number): void {
    this.#sends += 1
    this.#bytes += bytes
  }

  /** Frees the room that `enter` or `force` took. */
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
