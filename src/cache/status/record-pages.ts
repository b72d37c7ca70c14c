import type { CopyUse } from '../../model/copy.js'
import type { PlacedLease } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { CopyFilter, EventFilter, LeaseFilter } from '../../records/contract/record-requests.js'
import type { RecordStore } from '../../records/contract/record-store.js'

/** Maximum number of copies in memory at once. */
const PAGE_COPIES = 500
/** Maximum number of leases in memory at once. */
const PAGE_LEASES = 500
/** Maximum number of history lines in memory at once. */
const PAGE_EVENTS = 500

/**
 * Goes through the matching copies page by page, ordered by dataset, node and creation: 100,000 take the memory of one
 * page. Pages are read one after the other, so a change in between may show only in a later one.
 */
export function readCopyPages(
  record: Pick<RecordStore, 'listCopies'>,
  filter: Omit<CopyFilter, 'after' | 'limit'>,
  { nowMs, pageCopies = PAGE_COPIES }: { readonly nowMs: number; readonly pageCopies?: number },
): AsyncGenerator<readonly CopyUse[]> {
  return readPages<CopyUse>(pageCopies, (last) =>
    record.listCopies({ ...filter, after: last, limit: pageCopies }, nowMs),
  )
}

/** Goes through the matching leases like `readCopyPages`, oldest first. */
export function readLeasePages(
  record: Pick<RecordStore, 'listLeases'>,
  filter: Omit<LeaseFilter, 'after' | 'limit'>,
  { pageLeases = PAGE_LEASES }: { readonly pageLeases?: number } = {},
): AsyncGenerator<readonly PlacedLease[]> {
  return readPages<PlacedLease>(pageLeases, (last) =>
    record.listLeases({ ...filter, after: last, limit: pageLeases }),
  )
}

/** Goes through the matching history like `readCopyPages`, newest first, at most `limit` lines. */
export async function* readEventPages(
  record: Pick<RecordStore, 'listEvents'>,
  { limit, ...filter }: EventFilter,
  { pageEvents = PAGE_EVENTS }: { readonly pageEvents?: number } = {},
): AsyncGenerator<readonly RecordEvent[]> {
  let left = limit
  const pages = readPages<RecordEvent>(pageEvents, (last) =>
    record.listEvents({
      ...filter,
      before: last?.sequence ?? filter.before,
      limit: Math.min(left, pageEvents),
    }),
  )
  for await (const page of pages) {
    yield page
    left -= page.length
    if (left <= 0) return
  }
}

/** Yields the copies of one dataset after the other. */
export async function* readDatasetCopies(
  pages: AsyncIterable<readonly CopyUse[]>,
): AsyncGenerator<readonly CopyUse[]> {
  let gathered: CopyUse[] = []
  for await (const page of pages) {
    for (const copy of page) {
      if (gathered.length > 0 && gathered[0]!.dataset !== copy.dataset) {
        yield gathered
        gathered = []
      }
      gathered.push(copy)
    }
  }
  if (gathered.length > 0) yield gathered
}

/** Reads page after page, passing each the last row of the one before, until a page is not full. */
async function* readPages<Row>(
  pageRows: number,
  read: (last: Row | undefined) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  let last: Row | undefined
  for (;;) {
    const page = await read(last)
    if (page.length > 0) yield page
    if (page.length < pageRows) return
    last = page.at(-1)
  }
}
