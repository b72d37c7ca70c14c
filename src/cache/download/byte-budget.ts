/** Keep no more under way than arrives in this time, in ms: a reader's need gets the link that soon. */
const AHEAD_MS = 500
/** Interval over which the pace is measured, in ms. */
const INTERVAL_MS = 500
/** A slower store is kept busy too: with what arrives in this many times its quickest answer. */
const ANSWERS_AHEAD = 1.5
/** This many bytes, and two tasks of any kind, may always be under way. */
const LEAST_BYTES = 1024 * 1024
const LEAST_TASKS = 2

/**
 * Limits the bytes under way that no reader waits for. Requests already sent share the link with all later ones: with
 * 64 parts of 16 MiB under way on 1 Gb/s, the first batch of a feed gets its bytes after 8 s. The pace is measured on
 * the bytes counted here: the node's own share of a store that others read too.
 */
export class ByteBudget {
  #underWayBytes = 0
  #underWayTasks = 0
  #endedBytes = 0
  #bytesPerMs = 0
  #quickestMs = Number.POSITIVE_INFINITY
  #before: { readonly atMs: number; readonly endedBytes: number } | undefined

  /** Whether enough is under way for now; `nowMs`: time on any one clock, in ms. */
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

  /** `tookMs`: time since it began, in ms. */
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
