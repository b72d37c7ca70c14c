import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import type { Scope, ScreenState } from '../screen-state.js'
import { listCopyRows } from './copy-rows.js'
import { listEventRows } from './event-rows.js'
import { listLeaseRows } from './lease-rows.js'
import type { ListRows } from './list-rows.js'
import { listNodeRows } from './node-rows.js'
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
): ListRows {
  const from = narrow(snapshot ?? NOTHING, scope)
  const sort = sorts[tab]
  const words = filter.trim()
  switch (tab) {
    case 'copies':
      return listCopyRows(from, words, sort)
    case 'leases':
      return listLeaseRows(from, words, sort)
    case 'transfers':
      return listTransferRows(from, words, sort)
    case 'events':
      return listEventRows(from, words, sort)
    case 'nodes':
      return listNodeRows(from, words, sort)
    case 'waits':
      return listWaitRows(from, words, sort)
  }
}

/** What is on one node, or keeps one copy. The nodes themselves stay all. */
function narrow(snapshot: StatusSnapshot, scope: Scope | undefined): StatusSnapshot {
  if (!scope) return snapshot
  const isIn = (row: { readonly node: string; readonly copyId?: string | null }) =>
    (scope.node === undefined || row.node === scope.node) &&
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
