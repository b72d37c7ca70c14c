import { atEndNow } from '../../failure/closers.js'
import { compareKeys } from '../../model/compare-keys.js'
import type { ListedObject, ListOptions } from '../source.js'
import type { ListPage, PageLimits, PageQuestion } from './list-page.js'
import type { ListingPage } from './parse-listing.js'
import { checkAdvance, PartsListing, sampleKeys } from './parts-listing.js'
import { noteGreatest } from './plan-split.js'

/** A listing that ends within this many pages is not worth another request. */
const PAGES_BEFORE_PARTS = 2

/**
 * Lists a prefix in parts side by side, found while listing: by its folders first, then by guesses that split the
 * widest parts again and again. Pages come in any order. Throws ListingDisorder if the server turns out not to keep the
 * order of keys. `isSequential` follows the server page by page in any order; so do servers that only know version 1 of
 * the listing, because they say that there is more, but not where.
 */
export async function* listObjects(
  options: ListOptions & { readonly listPage: ListPage; readonly url: string },
): AsyncGenerator<readonly ListedObject[]> {
  const stop = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal
  const { url, listPage } = options
  const limits: PageLimits = { signal, onRetry: options.onRetry, stallTimeoutMs: options.stallTimeoutMs }
  const greatest: number[] = []
  const keys: string[] = []
  let after: string | undefined
  let isInOrder = options.isSequential !== true
  let before: ListingPage | undefined
  let question: PageQuestion = { continuation: undefined }
  using _ = atEndNow(() => stop.abort('the listing ended'))
  for (let pages = 1; ; pages += 1) {
    const page = await listPage(question, limits)
    checkAdvance(page, before, url)
    before = page
    isInOrder &&= isAscending(after, page.objects)
    if (isInOrder) for (const { key } of page.objects) keys.push(key)
    after = page.objects.at(-1)?.key ?? after
    if (isInOrder) noteGreatest(greatest, sampleKeys(page))
    if (page.objects.length > 0) yield page.objects
    if (!page.isTruncated) return
    const { continuation } = page
    question = continuation === undefined ? { marker: after } : { continuation }
    if (isInOrder && continuation !== undefined && pages >= PAGES_BEFORE_PARTS && after !== undefined) {
      const { requestLimit } = options
      const known = { listPage, url, limits, requestLimit, listed: { keys, pages }, greatest }
      yield* new PartsListing(after, known).pages()
      return
    }
  }
}

function isAscending(after: string | undefined, objects: readonly ListedObject[]): boolean {
  let last = after
  for (const { key } of objects) {
    if (last !== undefined && compareKeys(last, key) >= 0) return false
    last = key
  }
  return true
}
