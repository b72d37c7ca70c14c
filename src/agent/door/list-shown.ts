import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import type { EvictionOrder } from '../../policy/eviction-order.js'
import type { CopyFilter, OrderRequest } from '../../records/contract/record-requests.js'
import type { NewestDatasets } from '../../records/contract/record-store.js'
import { type DoorCall, findShown, keepShown, requireReader } from './door-call.js'
import { PAGE_ROWS } from './door-wire.js'

/**
 * Lists rows about datasets that the asker may read, as many as were asked for if there are so many: a client takes a
 * shorter page for the last. Rejects with NOT_PERMITTED if the filter names a dataset that they may not read.
 */
export async function listShown<Row extends { readonly dataset: string }>(
  call: DoorCall,
  filter: { readonly dataset?: string | undefined; readonly limit?: number | undefined },
  read: (last: Row | undefined, limit: number) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  if (filter.dataset !== undefined) await requireReader(call, filter.dataset)
  const limit = filter.limit ?? PAGE_ROWS
  const items: Row[] = []
  let last: Row | undefined
  for (;;) {
    throwIfStopped(call.signal)
    const rows = last === undefined ? limit : PAGE_ROWS
    const page = await read(last, rows)
    items.push(...(await keepShown(call, page)))
    if (page.length < rows || items.length >= limit) return items.slice(0, limit)
    last = page.at(-1)
  }
}

/** Lists the newest datasets that the asker may read, and counts no other that it met. */
export async function listNewest(
  call: DoorCall,
  { limit, ...filter }: Pick<CopyFilter, 'dataset' | 'node'> & { readonly limit: number },
): Promise<NewestDatasets> {
  if (filter.dataset !== undefined) await requireReader(call, filter.dataset)
  const { names, total } = await call.cache.record.listNewestDatasets(filter, PAGE_ROWS)
  const shown: string[] = []
  let lookedAt = 0
  while (shown.length < limit && lookedAt < names.length) {
    const next = names.slice(lookedAt, lookedAt + limit)
    shown.push(...next.filter(await findShown(call, next)))
    lookedAt += next.length
  }
  const hidden = lookedAt - shown.length
  return { names: shown.slice(0, limit), total: total - hidden }
}

/** Ranks a dataset among all copies of a node. The first to be evicted are those that the asker may read. */
export async function foresee(call: DoorCall, { limit, ...asked }: OrderRequest): Promise<EvictionOrder> {
  await requireReader(call, asked.dataset)
  const { record, nowMs } = call.cache
  const { first, ranks } = await record.foreseeOrder({ ...asked, limit: PAGE_ROWS }, nowMs())
  const isShown = await findShown(
    call,
    first.map(({ copy }) => copy.dataset),
  )
  return { first: first.filter(({ copy }) => isShown(copy.dataset)).slice(0, limit), ranks }
}
