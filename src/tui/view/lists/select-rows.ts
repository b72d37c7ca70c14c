import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import type { Throughput } from '../../../cache/status/throughput.js'
import type { Scope, ScreenState } from '../screen-state.js'
import { listCopyRows } from './copy-rows.js'
import { listDatasetRows } from './dataset-rows.js'
import { listEventRows } from './event-rows.js'
import { listLeaseRows } from './lease-rows.js'
import type { ListChoice, ListRows, Tab } from './list-rows.js'
import { listNodeRows } from './node-rows.js'
import { listShareRows } from './share-rows.js'
import { listTransferRows } from './transfer-rows.js'
import { listWaitRows } from './wait-rows.js'

const NOTHING: StatusSnapshot = {
  takenAtMs: 0,
  recordLocation: '',
  nodes: [],
  copies: [],
  layouts: [],
  leases: [],
  transfers: [],
  waits: [],
  events: [],
}

/** The list that a tab shows. */
export function selectRows(
  snapshot: StatusSnapshot | undefined,
  { tab, filter, sorts, scope }: Pick<ScreenState, 'tab' | 'filter' | 'sorts' | 'scope'>,
  throughput: Throughput,
): ListRows {
  const sort = sorts[tab]
  const choice = { filter: filter.trim(), sort, throughput }
  const rows = listRows(narrow(snapshot ?? NOTHING, scope), tab, choice)
  return sort ? { ...rows, sortedBy: sort.column } : rows
}

function listRows(from: StatusSnapshot, tab: Tab, choice: ListChoice): ListRows {
  switch (tab) {
    case 'copies':
      return listCopyRows(from, choice)
    case 'leases':
      return listLeaseRows(from, choice)
    case 'transfers':
      return listTransferRows(from, choice)
    case 'events':
      return listEventRows(from, choice)
    case 'nodes':
      return listNodeRows(from, choice)
    case 'datasets':
      return listDatasetRows(from, choice)
    case 'shares':
      return listShareRows(from, choice)
    case 'waits':
      return listWaitRows(from, choice)
  }
}

/** Keeps the items on one node, of one dataset, or with a lease on one copy. Keeps all nodes. */
function narrow(snapshot: StatusSnapshot, scope: Scope | undefined): StatusSnapshot {
  if (!scope) return snapshot
  const isIn = (row: { readonly node: string; readonly dataset: string; readonly copyId?: string | null }) =>
    (scope.node === undefined || row.node === scope.node) &&
    (scope.dataset === undefined || row.dataset === scope.dataset) &&
    (scope.copyId === undefined || row.copyId === undefined || row.copyId === scope.copyId)
  return {
    ...snapshot,
    copies: snapshot.copies.filter(isIn),
    leases: snapshot.leases.filter(isIn),
    transfers: snapshot.transfers.filter(isIn),
    waits: snapshot.waits.filter(isIn),
    events: snapshot.events.filter(isIn),
  }
}
