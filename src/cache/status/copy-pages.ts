import type { CopyUse } from '../../model/copy.js'
import type { RecordStore } from '../../records/record-store.js'
import type { StatusFilter } from './status-snapshot.js'

/** Copies that are in memory at once. */
const PAGE_COPIES = 500

/**
 * Goes through the copies that match, ordered by dataset, node and creation, page by page: 100,000 take the memory of
 * one page. The pages are read one after the other: what changes meanwhile may be in a later one only.
 */
export async function* readCopyPages(
  record: Pick<RecordStore, 'listCopies'>,
  filter: StatusFilter,
  { nowMs, pageCopies = PAGE_COPIES }: { readonly nowMs: number; readonly pageCopies?: number },
): AsyncGenerator<readonly CopyUse[]> {
  let last: CopyUse | undefined
  for (;;) {
    const page = await record.listCopies(
      { ...filter, ...(last && { after: last }), limit: pageCopies },
      nowMs,
    )
    if (page.length > 0) yield page
    if (page.length < pageCopies) return
    last = page.at(-1)
  }
}

/** The copies of one dataset after the other. */
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
