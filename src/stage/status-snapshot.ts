import type { RecordStore } from '../records/record-store.js'
import { composeStatus, STATUS_EVENTS, type StatusSnapshot } from './plan/compose-status.js'

export interface StatusFilter {
  readonly dataset?: string
  readonly node?: string
}

/** Reads all that a status shows, once. The record is read in several transactions: counts may differ by a moment. */
export async function readStatus(
  record: RecordStore,
  filter: StatusFilter,
  nowMs: number,
): Promise<StatusSnapshot> {
  const nodes = await record.listNodes()
  const copies = await record.listCopies(filter, nowMs)
  const leases = await record.listLeases(filter)
  const events = await record.listEvents({ ...filter, limit: STATUS_EVENTS })
  // Usage counts every copy of a node, whatever dataset is asked for.
  const charged =
    filter.dataset === undefined
      ? copies
      : await record.listCopies(filter.node === undefined ? {} : { node: filter.node }, nowMs)
  return composeStatus({
    takenAtMs: nowMs,
    recordLocation: record.location,
    nodes: nodes.filter((entry) => filter.node === undefined || entry.node === filter.node),
    copies,
    chargedCopies: charged,
    leases,
    events,
  })
}
