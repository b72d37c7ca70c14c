/** A read that takes longer did not come from memory, ms. */
const SLOW_MS = 1
/** This thread spends at most one part in this many of its time waiting for disks. */
const PAUSE_FACTOR = 20

/**
 * Decides which thread reads. This thread reads data that the kernel has in memory: that takes less time than asking
 * another, and the bytes stay in this processor's cache. Once a disk made this thread wait, it asks others for a while,
 * so that callers who read from memory are not held up for long.
 */
export class DiskPace {
  readonly #nowMs: () => number
  #slowUntilMs = Number.NEGATIVE_INFINITY

  /** `nowMs`: a monotonic clock, ms. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Whether this thread should read now. */
  get isHere(): boolean {
    return this.#nowMs() >= this.#slowUntilMs
  }

  /** Returns the result of one of the two: `here` works on this thread, `elsewhere` on another. */
  run<Result>(here: () => Result, elsewhere: () => Promise<Result>): Result | Promise<Result> {
    return this.isHere ? this.runHere(here) : elsewhere()
  }

  /** Returns the result of `here`, which always works on this thread. */
  runHere<Result>(here: () => Result): Result {
    const beganMs = this.#nowMs()
    const result = here()
    const endMs = this.#nowMs()
    const tookMs = endMs - beganMs
    if (tookMs > SLOW_MS) this.#slowUntilMs = endMs + PAUSE_FACTOR * tookMs
    return result
  }
}
