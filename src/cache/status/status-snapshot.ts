import type { CopyUse } from '../../model/copy.js'
import type { NodeEntry } from '../../model/node.js'
import { sumUpCopies } from '../../policy/copy-sums.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { composeStatus, STATUS_EVENTS, type StatusSnapshot } from './compose-status.js'
import { findLayouts, type StripedLayout } from './find-layouts.js'

/** Limits a status to this dataset or node; absent: all. */
export interface StatusFilter {
  readonly dataset?: string | undefined
  readonly node?: string | undefined
}

/** The matching nodes of the record; `ownNode`, measured just now, replaces its entry. */
export async function readNodes(
  record: RecordStore,
  filter: StatusFilter,
  ownNode: NodeEntry | undefined,
): Promise<readonly NodeEntry[]> {
  const known = await record.listNodes()
  const nodes = ownNode
    ? [...known.filter((entry) => entry.node !== ownNode.node), ownNode].sort((a, b) =>
        a.node < b.node ? -1 : 1,
      )
    : known
  return nodes.filter((entry) => filter.node === undefined || entry.node === filter.node)
}

/**
 * Reads everything that a status shows, once. It reads the record in several transactions, so counts may differ by a
 * moment.
 */
export async function readStatus(
  record: RecordStore,
  filter: StatusFilter,
  options: { readonly nowMs: number; readonly ownNode?: NodeEntry | undefined },
): Promise<StatusSnapshot> {
  const { nowMs, ownNode } = options
  const copies = await record.listCopies(filter, nowMs)
  const leases = await record.listLeases(filter)
  const events = await record.listEvents({ ...filter, limit: STATUS_EVENTS })
  const isOfDataset = filter.dataset !== undefined // usage counts every copy of a node, even then
  return composeStatus({
    takenAtMs: nowMs,
    recordLocation: record.location,
    nodes: await readNodes(record, filter, ownNode),
    copies,
    sums: isOfDataset ? await record.sumCopies({ node: filter.node }, nowMs) : sumUpCopies(copies),
    layouts: filter.node === undefined ? findLayouts(copies) : await readLayouts(record, filter, nowMs),
    leases,
    transferLeases: await record.listLeases({ purpose: 'transfer' }),
    events,
  })
}

/** Finds the striped versions of the matching copies, with their stripes on all nodes: those reveal the missing ones. */
export async function readLayouts(
  record: Pick<RecordStore, 'listCopies'>,
  filter: StatusFilter,
  nowMs: number,
): Promise<readonly StripedLayout[]> {
  const striped = await record.listCopies({ ...filter, isStriped: true }, nowMs)
  const copies: CopyUse[] = [] // whole copies serve as stripes too
  for (const dataset of new Set(striped.map((copy) => copy.dataset)))
    copies.push(...(await record.listCopies({ dataset }, nowMs)))
  return findLayouts(copies)
}
