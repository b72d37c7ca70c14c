import type { NodeEntry } from '../../model/node.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { composeStatus, STATUS_EVENTS, type StatusSnapshot } from './compose-status.js'

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
  // Usage counts every copy of a node, even with a filter by dataset.
  const charged =
    filter.dataset === undefined ? copies : await record.listCopies({ node: filter.node }, nowMs)
  // Stripes on other nodes reveal those missing on one.
  const { node: _, ...ofDatasets } = filter
  const striped = filter.node === undefined ? copies : await record.listCopies(ofDatasets, nowMs)
  return composeStatus({
    takenAtMs: nowMs,
    recordLocation: record.location,
    nodes: await readNodes(record, filter, ownNode),
    copies,
    chargedCopies: charged,
    stripedCopies: striped,
    leases,
    transferLeases: await record.listLeases({ purpose: 'transfer' }),
    events,
  })
}
