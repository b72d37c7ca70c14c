/** No more than arrives in this time is under way, ms: so soon what a reader waits for has the link. */
const AHEAD_MS = 500
/** How long a pace is measured, ms. */
const INTERVAL_MS = 500
/** A store that takes longer to answer is kept busy all the same: the quickest answer so many times. */
const ANSWERS_AHEAD = 1.5
/** So much may always be under way, bytes, and two tasks, whatever they fetch. */
const LEAST_BYTES = 1024 * 1024
const LEAST_TASKS = 2

/**
 * How much may be under way that no reader waits for. Requests that were sent share the link with all that come after
 * them: with 64 parts of 16 MiB under way on 1 Gb/s, the first batch of a feed comes to its bytes after 8 s. The pace is
 * that of what is counted here, a node's own share of a store that others read, too.
 */
export class ByteBudget {
  #underWayBytes = 0
  #underWayTasks = 0
  #endedBytes = 0
  #bytesPerMs = 0
  #quickestMs = Number.POSITIVE_INFINITY
  #before: { readonly atMs: number; readonly endedBytes: number } | undefined

  /** Whether what is under way is enough for now; `nowMs`: of a clock, ms. */
  isSpent(nowMs: number): boolean {
    this.#measure(nowMs)
    const answersMs = this.#endedBytes > 0 ? this.#quickestMs * ANSWERS_AHEAD : 0
    const mostBytes = Math.max(LEAST_BYTES, this.#bytesPerMs * Math.max(AHEAD_MS, answersMs))
    return this.#underWayTasks >= LEAST_TASKS && this.#underWayBytes >= mostBytes
  }

  began(bytes: number): void {
    this.#underWayTasks += 1
    this.#underWayBytes += bytes
  }

  /** `tookMs`: since it began, ms. */
  ended(bytes: number, tookMs: number): void {
    this.#underWayTasks -= 1
    this.#underWayBytes -= bytes
    this.#endedBytes += bytes
    if (bytes > 0) this.#quickestMs = Math.min(this.#quickestMs, tookMs)
  }

  #measure(nowMs: number): void {
    this.#before ??= { atMs: nowMs, endedBytes: this.#endedBytes }
    const { atMs, endedBytes } = this.#before
    if (nowMs - atMs < INTERVAL_MS) return
    this.#bytesPerMs = (this.#endedBytes - endedBytes) / (nowMs - atMs)
    this.#before = { atMs: nowMs, endedBytes: this.#endedBytes }
  }
}
