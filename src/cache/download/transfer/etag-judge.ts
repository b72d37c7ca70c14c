import { log } from '../../../log/log.js'

/**
 * Judges whether a source's MD5-like etags are MD5. Stores that encrypt, or skip MD5 for speed, have other etags: the
 * same bytes arrive again and again with another digest. Once any etag was right, all are taken at their word.
 */
export class EtagJudge {
  #hasProven = false
  #hasTold = false
  /** The last digest found for each object, by key. */
  readonly #before = new Map<string, string>()

  /** Notes that an etag was the MD5 of its object. */
  proven(): void {
    this.#hasProven = true
    this.#before.clear()
  }

  /** Whether the etag is not an MD5, for bytes whose MD5 differs from it. True: the bytes are what the store holds. */
  isNone(key: string, foundMd5: string): boolean {
    if (this.#hasProven) return false
    const isSameAgain = this.#before.get(key) === foundMd5
    this.#before.set(key, foundMd5)
    if (isSameAgain && !this.#hasTold) {
      this.#hasTold = true
      log(
        'verbose',
        `${JSON.stringify(key)}: the same bytes came twice with another MD5 than the etag, which is none`,
      )
    }
    return isSameAgain
  }
}
