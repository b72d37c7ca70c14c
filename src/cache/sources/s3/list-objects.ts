import { SourceFailure } from '../../../failure/source-failure.js'
import { compareKeys } from '../../../model/compare-keys.js'
import type { ListedObject, ListOptions } from '../source.js'
import { KeyRange } from './key-range.js'
import type { ListPage, PageLimits } from './list-page.js'
import type { ListingPage } from './parse-listing.js'
import { noteGreatest, planBorders, planSplit } from './plan-split.js'

/** Requests at once: what hides a page's latency (100 to 200 ms on AWS) behind the taking of other pages. */
const DEFAULT_CONCURRENCY = 16
/** A listing that ends within these is not worth a question more. Pages. */
const PAGES_BEFORE_PARTS = 2
const MAX_FOLDER_LEVELS = 8
/** Pages that wait to be taken before no more is asked for: whoever takes them is slower than the server. */
const MAX_READY_PAGES = 4

/**
 * Lists a prefix in parts side by side, which are found while listing: by its folders first, then by guesses that
 * split the widest parts again and again. Pages come in any order. Throws ListingDisorder where the server turns out
 * not to keep to the order of keys; `isSequential` follows the server page by page whatever its order.
 */
export async function* listObjects(
  options: ListOptions & { readonly listPage: ListPage; readonly url: string },
): AsyncGenerator<readonly ListedObject[]> {
  const stop = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal
  const { url, listPage } = options
  const limits: PageLimits = { signal, onRetry: options.onRetry, stallTimeoutMs: options.stallTimeoutMs }
  const greatest: number[] = []
  let firstKey: string | undefined
  let after: string | undefined
  let isInOrder = options.isSequential !== true
  let continuation: string | undefined
  try {
    for (let pages = 1; ; pages += 1) {
      const page = await listPage({ continuation }, limits)
      checkAdvance(page, continuation, url)
      isInOrder &&= isAscending(after, page.objects)
      firstKey ??= page.objects[0]?.key
      after = page.objects.at(-1)?.key ?? after
      if (isInOrder) noteGreatest(greatest, sampleKeys(page))
      if (page.objects.length > 0) yield page.objects
      if (!page.isTruncated) return
      continuation = page.continuation
      if (isInOrder && pages >= PAGES_BEFORE_PARTS && after !== undefined) break
    }
    yield* listParts(after, { ...options, limits, firstKey: firstKey!, greatest })
  } finally {
    stop.abort('the listing ended')
  }
}

interface PartsOptions extends ListOptions {
  readonly listPage: ListPage
  readonly url: string
  readonly limits: PageLimits
  readonly firstKey: string
  /** Filled on the way: the greatest code point at each position of keys. */
  readonly greatest: number[]
}

async function* listParts(begin: string, options: PartsOptions): AsyncGenerator<readonly ListedObject[]> {
  const { listPage, url, limits, requestLimit, firstKey, greatest } = options
  const limit = () => Math.min(DEFAULT_CONCURRENCY, requestLimit?.() ?? DEFAULT_CONCURRENCY)
  const ready: (readonly ListedObject[])[] = []
  let failure: { readonly error: unknown } | undefined
  let running = 0
  let wake = () => {}
  /** The one split longest ago first: it is likely to have most left. */
  const all = new KeyRange(begin)
  let ranges = [all]

  const run = (work: () => Promise<void>) => {
    running += 1
    work()
      .catch((error: unknown) => {
        failure ??= { error }
      })
      .finally(() => {
        running -= 1
        wake()
      })
  }
  const listNext = (range: KeyRange) => {
    range.isBusy = true
    run(async () => {
      const { continuation } = range
      const question = continuation === undefined ? { startAfter: range.after } : { continuation }
      const page = await listPage(question, limits)
      checkAdvance(page, continuation, url)
      noteGreatest(greatest, sampleKeys(page))
      const objects = range.take(page)
      range.isBusy = false
      if (objects.length > 0) ready.push(objects)
    })
  }
  const split = (): KeyRange | undefined => {
    for (const range of ranges) {
      if (!range.maySplit) continue
      const border = planSplit({ after: range.after, end: range.end, firstKey, greatest })
      if (border === undefined) continue
      const upper = range.split(border)
      ranges = [...ranges.filter((other) => other !== range), range, upper]
      return upper
    }
    return undefined
  }
  let hasBorders = false
  run(async () => {
    const folders = await findFolders(listPage, begin, limits)
    hasBorders = true
    if (all.isDone) return
    let lowest = all
    for (const border of planBorders(folders, lowest.after, limit())) {
      lowest = lowest.split(border)
      ranges.push(lowest)
    }
  })

  for (;;) {
    if (failure) throw failure.error
    ranges = ranges.filter((range) => !range.isDone || range.isBusy)
    while (running < limit() && ready.length <= MAX_READY_PAGES) {
      const range =
        ranges.find(({ isBusy, isDone }) => !isBusy && !isDone) ?? (hasBorders ? split() : undefined)
      if (range === undefined) break
      listNext(range)
    }
    const objects = ready.shift()
    if (objects) yield objects
    else if (running === 0) return
    else
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }
}

/** The folders of the key space from `after` on, below the folders that hold everything. */
async function findFolders(
  listPage: ListPage,
  after: string,
  limits: PageLimits,
): Promise<readonly string[]> {
  let below = ''
  for (let level = 0; level < MAX_FOLDER_LEVELS; level += 1) {
    const { folders, objects, isTruncated } = await listPage(
      { below, startAfter: after, delimiter: '/' },
      limits,
    )
    const only = folders[0]
    if (folders.length !== 1 || objects.length > 0 || isTruncated || !only?.startsWith(below)) return folders
    if (only.length <= below.length) return folders
    below = only
  }
  return []
}

function checkAdvance(page: ListingPage, continuation: string | undefined, url: string): void {
  if (!page.isTruncated || (page.continuation !== undefined && page.continuation !== continuation)) return
  throw new SourceFailure('SOURCE_TRUNCATED', `${url}: the listing does not advance`, {
    isTransient: false,
    hint: 'the server’s listing is broken; check the endpoint',
  })
}

function isAscending(after: string | undefined, objects: readonly ListedObject[]): boolean {
  let last = after
  for (const { key } of objects) {
    if (last !== undefined && compareKeys(last, key) >= 0) return false
    last = key
  }
  return true
}

function sampleKeys({ objects }: ListingPage): readonly string[] {
  return objects.filter((_, index) => index % 64 === 0).map(({ key }) => key)
}
