import type { ByteRange } from '../arrivals/block-set.js'

/** No more than arrives in this time is under way, ms: so soon what a reader asks for has the link. */
const AHEAD_MS = 500
/** How long a pace is measured, ms. */
const INTERVAL_MS = 200

/**
 * How many bytes may be under way that no reader asked for. Requests that were sent share the link with all that come
 * after them: with 64 parts of 16 MiB under way on 1 Gb/s, the first batch of a feed comes to its bytes after 8 s.
 */
export class ByteBudget {
  readonly #receivedBytes: () => number
  readonly #leastBytes: number
  #underWayBytes = 0
  #bytesPerMs = 0
  #before: { readonly atMs: number; readonly bytes: number } | undefined

  /** `receivedBytes`: of the download so far; `leastBytes`: what may always be under way. */
  constructor(receivedBytes: () => number, leastBytes: number) {
    this.#receivedBytes = receivedBytes
    this.#leastBytes = leastBytes
  }

  /** Whether what is under way is enough for now; `nowMs`: of a clock, ms. */
  isSpent(nowMs: number): boolean {
    this.#measure(nowMs)
    return this.#underWayBytes >= Math.max(this.#leastBytes, this.#bytesPerMs * AHEAD_MS)
  }

  began({ length }: ByteRange): void {
    this.#underWayBytes += length
  }

  ended({ length }: ByteRange): void {
    this.#underWayBytes -= length
  }

  #measure(nowMs: number): void {
    const bytes = this.#receivedBytes()
    this.#before ??= { atMs: nowMs, bytes }
    const { atMs, bytes: earlier } = this.#before
    if (nowMs - atMs < INTERVAL_MS) return
    this.#bytesPerMs = Math.max(0, bytes - earlier) / (nowMs - atMs)
    this.#before = { atMs: nowMs, bytes }
  }
}
