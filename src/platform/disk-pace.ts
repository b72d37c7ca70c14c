/** What takes longer did not come from memory, ms. */
const SLOW_MS = 1
/** This thread waits for disks in at most one part in so many of its time. */
const PAUSE_FACTOR = 20

/**
 * Decides which thread reads. What the kernel has in memory is read on this one, which takes less time than asking
 * another, and the bytes stay in the cache of this processor. Once a disk made this thread wait, others are asked for a
 * while, so that nobody who reads from memory is held up for long.
 */
export class DiskPace {
  readonly #nowMs: () => number
  #slowUntilMs = Number.NEGATIVE_INFINITY

  /** `nowMs`: a clock that never goes back, ms. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Whether this thread reads now. */
  get isHere(): boolean {
    return this.#nowMs() >= this.#slowUntilMs
  }

  /** What one of the two returns: `here` works on this thread, `elsewhere` has another one work. */
  run<Result>(here: () => Result, elsewhere: () => Promise<Result>): Result | Promise<Result> {
    return this.isHere ? this.runHere(here) : elsewhere()
  }

  /** What `here` returns, which works on this thread in any case. */
  runHere<Result>(here: () => Result): Result {
    const beganMs = this.#nowMs()
    const result = here()
    const endMs = this.#nowMs()
    const tookMs = endMs - beganMs
    if (tookMs > SLOW_MS) this.#slowUntilMs = endMs + PAUSE_FACTOR * tookMs
    return result
  }
}
