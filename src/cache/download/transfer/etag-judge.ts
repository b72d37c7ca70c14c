import { log } from '../../../log/log.js'

/**
 * Whether etags of a source that look like MD5 are one. Those of stores that encrypt, or leave MD5 out for speed, are
 * not: the same bytes come again and again, with another digest. Where any etag was right, all are taken at their word.
 */
export class EtagJudge {
  #hasProven = false
  #hasTold = false
  /** The digest that the bytes of an object had before, by its key. */
  readonly #before = new Map<string, string>()

  /** An etag was the MD5 of its object. */
  proven(): void {
    this.#hasProven = true
    this.#before.clear()
  }

  /** The bytes have another MD5 than the etag. True: the etag is none, the bytes are what the store holds. */
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
