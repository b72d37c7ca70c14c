import { SourceFailure } from '../../failure/source-failure.js'
import type { ListedObject } from '../source.js'
import { KeyRange } from './key-range.js'
import type { ListPage, PageLimits } from './list-page.js'
import type { ListingPage } from './parse-listing.js'
import { noteGreatest, planBorders, planPartCount, planSplit } from './plan-split.js'

/** Concurrent requests: hides a page's latency (100 to 200 ms on AWS) behind the processing of other pages. */
const DEFAULT_CONCURRENCY = 16
const MAX_FOLDER_LEVELS = 8
/** Finished pages that may wait before requests stop: then the consumer is slower than the server. */
const MAX_READY_PAGES = 4

interface PartsOptions {
  readonly listPage: ListPage
  readonly url: string
  readonly limits: PageLimits
  /** As in `ListOptions`. */
  readonly requestLimit?: (() => number) | undefined
  /** The keys and pages listed so far. */
  readonly listed: { readonly keys: readonly string[]; readonly pages: number }
  /** Filled during the listing: the greatest code point at each position of keys. */
  readonly greatest: number[]
}

/** A listing of the keys after `after`, in ranges side by side that are split during the listing. */
export class PartsListing {
  readonly #options: PartsOptions
  /** The range split longest ago comes first: it is likely to have most left. */
  #ranges: KeyRange[]
  readonly #ready: (readonly ListedObject[])[] = []
  #hasBorders = false
  #running = 0
  #failure: { readonly error: unknown } | undefined
  #wake = () => {}

  constructor(after: string, options: PartsOptions) {
    this.#options = options
    this.#ranges = [new KeyRange(after)]
  }

  /** Every object once, in any order. */
  async *pages(): AsyncGenerator<readonly ListedObject[]> {
    this.#run(() => this.#splitByFolders(this.#ranges[0]!))
    for (;;) {
      if (this.#failure) throw this.#failure.error
      this.#ranges = this.#ranges.filter((range) => !range.isDone || range.isBusy)
      this.#askMore()
      const objects = this.#ready.shift()
      if (objects) yield objects
      else if (this.#running === 0) return
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }

  get #limit(): number {
    return Math.min(DEFAULT_CONCURRENCY, this.#options.requestLimit?.() ?? DEFAULT_CONCURRENCY)
  }

  #askMore(): void {
    while (this.#running < this.#limit && this.#ready.length <= MAX_READY_PAGES) {
      const idle = this.#ranges.find(({ isBusy, isDone }) => !isBusy && !isDone)
      const range = idle ?? (this.#hasBorders ? this.#split() : undefined)
      if (range === undefined) return
      range.isBusy = true
      this.#run(() => this.#listNext(range))
    }
  }

  #run(work: () => Promise<void>): void {
    this.#running += 1
    work()
      .catch((error: unknown) => {
        this.#failure ??= { error }
      })
      .finally(() => {
        this.#running -= 1
        this.#wake()
      })
  }

  async #listNext(range: KeyRange): Promise<void> {
    const { listPage, url, limits, greatest } = this.#options
    const { continuation } = range
    const question = continuation === undefined ? { startAfter: range.after } : { continuation }
    const page = await listPage(question, limits)
    if (page.isTruncated && (page.continuation ?? continuation) === continuation) throw stuck(url)
    noteGreatest(greatest, sampleKeys(page))
    const objects = range.take(page)
    range.isBusy = false
    if (objects.length > 0) this.#ready.push(objects)
  }

  #split(): KeyRange | undefined {
    const { listed, greatest } = this.#options
    const firstKey = listed.keys[0]!
    for (const range of this.#ranges) {
      if (!range.maySplit) continue
      const border = planSplit({ after: range.after, end: range.end, firstKey, greatest })
      if (border === undefined) continue
      const upper = range.split(border)
      this.#ranges = [...this.#ranges.filter((other) => other !== range), range, upper]
      return upper
    }
    return undefined
  }

  async #splitByFolders(all: KeyRange): Promise<void> {
    const { listPage, limits, listed } = this.#options
    const folders = await findFolders(listPage, all.after, limits)
    this.#hasBorders = true
    if (all.isDone) return
    let lowest = all
    const parts = planPartCount(folders, listed, this.#limit)
    for (const border of planBorders(folders, lowest.after, parts)) {
      lowest = lowest.split(border)
      this.#ranges.push(lowest)
    }
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

/** Throws SOURCE_TRUNCATED when the server repeats a page, or announces more without a place to continue from. */
export function checkAdvance(page: ListingPage, before: ListingPage | undefined, url: string): void {
  const { objects, continuation, isTruncated } = page
  const isRepeated =
    continuation === undefined
      ? objects.length > 0 && objects[0]!.key === before?.objects[0]?.key
      : continuation === before?.continuation
  const hasPlace = continuation !== undefined || objects.length > 0
  if (isRepeated || (isTruncated && !hasPlace)) throw stuck(url)
}

function stuck(url: string): SourceFailure {
  return new SourceFailure('SOURCE_TRUNCATED', `${url}: the listing does not advance`, {
    hint: 'the server knows neither ListObjectsV2 nor markers, or its listing is broken; check the endpoint',
  })
}

/** A few keys of a page, to guess the others from. */
export function sampleKeys({ objects }: ListingPage): readonly string[] {
  return objects.filter((_, index) => index % 64 === 0).map(({ key }) => key)
}
