import type { Urgency } from '../../model/urgency.js'

/** Keep no more under way than arrives in this time, in ms: a reader's need gets the link that soon. */
const AHEAD_MS = 500
/** Interval over which the pace is measured, in ms. */
const INTERVAL_MS = 500
/** A slower store is kept busy too: with what arrives in this many times its quickest answer. */
const ANSWERS_AHEAD = 1.5
/** This many bytes, and two tasks of any kind, may always be under way. */
const LEAST_BYTES = 1024 * 1024
const LEAST_TASKS = 2
/** Bytes that readers wait for may be under way up to this at any pace: four parts, or half a second at 1 Gb/s. */
const LEAST_WANTED_BYTES = 64 * 1024 * 1024

/**
 * Limits the bytes under way. Requests already sent share the link with all later ones: with 64 parts of 16 MiB under
 * way on 1 Gb/s, the first batch of a feed gets its bytes after 8 s, even if readers wait for all of them. The pace is
 * measured on the bytes counted here: the node's own share of a store that others read too.
 */
export class ByteBudget {
  #underWayBytes = 0
  #underWayTasks = 0
  /** Those of what readers wait for. */
  #wantedBytes = 0
  #endedBytes = 0
  #bytesPerMs = 0
  #quickestMs = Number.POSITIVE_INFINITY
  #before: { readonly atMs: number; readonly endedBytes: number } | undefined

  /** Whether enough is under way for what no reader waits for; `nowMs`: time on any one clock, in ms. */
  isSpent(nowMs: number): boolean {
    const mostBytes = Math.max(LEAST_BYTES, this.#bytesAhead(nowMs))
    return this.#underWayTasks >= LEAST_TASKS && this.#underWayBytes >= mostBytes
  }

  /**
   * Whether enough is under way of what readers wait for: the link fills, and more would delay the first of it. What
   * has arrived since the last measurement adds to the limit, so that a faster link fills soon.
   */
  isWantedSpent(nowMs: number): boolean {
    const aheadBytes = this.#bytesAhead(nowMs)
    const newBytes = this.#endedBytes - (this.#before?.endedBytes ?? 0)
    return this.#wantedBytes >= Math.max(LEAST_WANTED_BYTES, aheadBytes) + newBytes
  }

  began(bytes: number, urgency: Urgency): void {
    this.#underWayTasks += 1
    this.#underWayBytes += bytes
    if (urgency === 'wanted') this.#wantedBytes += bytes
  }

  /** `tookMs`: time since it began, in ms. */
  ended(bytes: number, urgency: Urgency, tookMs: number): void {
    this.#underWayTasks -= 1
    this.#underWayBytes -= bytes
    if (urgency === 'wanted') this.#wantedBytes -= bytes
    this.#endedBytes += bytes
    if (bytes > 0) this.#quickestMs = Math.min(this.#quickestMs, tookMs)
  }

  /** The bytes to keep under way at the measured pace. */
  #bytesAhead(nowMs: number): number {
    this.#measure(nowMs)
    const answersMs = this.#endedBytes > 0 ? this.#quickestMs * ANSWERS_AHEAD : 0
    return this.#bytesPerMs * Math.max(AHEAD_MS, answersMs)
  }

  #measure(nowMs: number): void {
    this.#before ??= { atMs: nowMs, endedBytes: this.#endedBytes }
    const { atMs, endedBytes } = this.#before
    if (nowMs - atMs < INTERVAL_MS) return
    this.#bytesPerMs = (this.#endedBytes - endedBytes) / (nowMs - atMs)
    this.#before = { atMs: nowMs, endedBytes: this.#endedBytes }
  }
}
