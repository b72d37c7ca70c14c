/** Calls that wait until something has changed, and then check for themselves. */
export class Waiters {
  readonly #wakes = new Set<() => void>()

  /** Resolves at the next `wakeAll`, or when `signal` aborts. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((settle) => {
      const wake = () => {
        this.#wakes.delete(wake)
        signal.removeEventListener('abort', wake)
        settle()
      }
      this.#wakes.add(wake)
      signal.addEventListener('abort', wake, { once: true })
      if (signal.aborted) wake()
    })
  }

  /** Wakes all current waiters. */
  wakeAll(): void {
    for (const wake of [...this.#wakes]) wake()
  }
}
