import { compareKeys } from '../../model/compare-keys.js'
import { type ListedObject, ListingDisorder } from '../source.js'
import type { ListingPage } from './parse-listing.js'

/** A range that brought fewer pages since it was last split is likely to end soon. */
const PAGES_BEFORE_SPLIT = 2
/** After this many splits in a row that found nothing, a range must bring as many pages before the next split. */
const MAX_EMPTY_SPLITS = 12

/** A part of the key space being listed: the keys above its border and up to `end`. */
export class KeyRange {
  /** Listed up to this key; the lower border at first. */
  after: string
  /** Undefined: to the end of the key space. */
  end: string | undefined
  continuation: string | undefined
  isBusy = false
  isDone = false
  #hasStarted = false
  /** The first key that the server returned above the lower border; undefined: none. */
  #first: string | undefined
  /** The first key that the server returned above `end`; undefined: none. */
  #beyond: string | undefined
  #below: KeyRange | undefined
  #above: KeyRange | undefined
  #pages = 0
  #emptySplits = 0
  /** Whether it was split and the part above is not known yet. */
  #isSplitting = false

  constructor(after: string, end?: string) {
    this.after = after
    this.end = end
  }

  get maySplit(): boolean {
    return this.#hasStarted && !this.isDone && !this.#isSplitting && this.#pages >= PAGES_BEFORE_SPLIT
  }

  /** Divides the range at `border` and returns the upper part. */
  split(border: string): KeyRange {
    const upper = new KeyRange(border, this.end)
    upper.#below = this
    upper.#above = this.#above
    if (this.#above) this.#above.#below = upper
    this.#above = upper
    this.end = border
    this.#isSplitting = true
    return upper
  }

  /**
   * Takes the next page of this range and returns its objects. Throws ListingDisorder for a page that does not fit the
   * request, is out of order or outside the range, and when neighbors do not meet: the part above a range must begin
   * with the key that the range itself saw beyond its end, else keys in between may be lost.
   */
  take(page: ListingPage): readonly ListedObject[] {
    let taken = 0
    for (const { key } of page.objects) {
      if (compareKeys(key, this.after) <= 0)
        throw new ListingDisorder(`${JSON.stringify(key)} came after ${JSON.stringify(this.after)}`)
      if (!this.#hasStarted && taken === 0) this.#first = key
      if (this.end !== undefined && compareKeys(key, this.end) > 0) {
        this.#beyond = key
        break
      }
      this.after = key
      taken += 1
    }
    const below = this.#below
    if (below && !this.#hasStarted) below.#noteSplit(taken > 0 ? 'found' : 'empty')
    this.#hasStarted = true
    this.#pages += 1
    this.continuation = page.continuation
    this.isDone = this.#beyond !== undefined || !page.isTruncated
    this.#checkBorder()
    if (below) below.#checkBorder()
    return taken === page.objects.length ? page.objects : page.objects.slice(0, taken)
  }

  #noteSplit(outcome: 'found' | 'empty'): void {
    this.#isSplitting = false
    this.#emptySplits = outcome === 'found' ? 0 : this.#emptySplits + 1
    if (outcome === 'found') this.#pages = 0
    if (this.#emptySplits < MAX_EMPTY_SPLITS) return
    this.#emptySplits = 0
    this.#pages = PAGES_BEFORE_SPLIT - MAX_EMPTY_SPLITS
  }

  #checkBorder(): void {
    const above = this.#above
    if (!this.isDone || above === undefined || !above.#hasStarted) return
    if (this.#beyond === above.#first) {
      // No further pages are requested for the two together; a key kept here would keep its whole page in memory.
      this.#above = undefined
      above.#below = undefined
      return
    }
    const [seen, found] = [this.#beyond, above.#first].map((key) => JSON.stringify(key) ?? 'the end')
    throw new ListingDisorder(`${JSON.stringify(this.end)} is followed by ${seen} and by ${found}`)
  }
}
