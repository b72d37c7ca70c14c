import { log } from '../../../log/log.js'

/** Facts about the etags of one download, in memory that its threads share. */
export type EtagEvidence = SharedArrayBuffer

/** Begins to judge the etags of a staging. */
export function createEtagEvidence(): EtagEvidence {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
}

/** States of the evidence. */
const UNKNOWN = 0
const RIGHT = 1
const NONE = 2

/** As often as a mismatch is retried: until then, another object may show that etags are right. */
const SAME_BYTES = 4

/**
 * Judges whether a source's MD5-like etags are MD5. Stores that encrypt, or skip MD5 for speed, have other etags: the
 * same bytes arrive again and again with another digest. The first object that is decided decides for the staging: once
 * an etag was right, all are taken at their word, and once one is judged to be none, none is compared any more.
 */
export class EtagJudge {
  /** One state for all threads of the staging. */
  readonly #evidence: Int32Array
  /** The last digest found for each object and how often it came, by key. */
  readonly #found = new Map<string, { readonly md5: string; times: number }>()

  constructor(evidence: EtagEvidence = createEtagEvidence()) {
    this.#evidence = new Int32Array(evidence)
  }

  /** Begins with the verdict that no etag is an MD5. */
  static ofNone(): EtagJudge {
    const evidence = createEtagEvidence()
    new Int32Array(evidence)[0] = NONE
    return new EtagJudge(evidence)
  }

  /** Notes that an etag was the MD5 of its object. */
  proven(): void {
    Atomics.compareExchange(this.#evidence, 0, UNKNOWN, RIGHT)
    this.#found.clear()
  }

  /** Whether the etag is not an MD5, for bytes whose MD5 differs from it. True: the bytes are what the store holds. */
  isNone(key: string, md5: string): boolean {
    const state = Atomics.load(this.#evidence, 0)
    if (state !== UNKNOWN) return state === NONE
    const before = this.#found.get(key)
    const times = before?.md5 === md5 ? before.times + 1 : 1
    this.#found.set(key, { md5, times })
    return times >= SAME_BYTES && this.isNoneAfter(key, times)
  }

  /** Like `isNone`, for bytes that came so many times in a row, as often as this object may be fetched. */
  isNoneAfter(key: string, times: number): boolean {
    const state = Atomics.load(this.#evidence, 0)
    if (state !== UNKNOWN) return state === NONE
    if (times < 2) return false
    if (Atomics.compareExchange(this.#evidence, 0, UNKNOWN, NONE) === RIGHT) return false
    log(
      'verbose',
      `${JSON.stringify(key)}: the same bytes came ${times} times with another MD5 than the etag: this source's etags are not MD5 sums`,
    )
    return true
  }
}
