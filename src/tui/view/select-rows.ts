import type { StatusSnapshot } from '../../stage/plan/compose-status.js'
import { listCopyRows, type SortOrder } from './copy-rows.js'
import { listEventRows } from './event-rows.js'
import { listLeaseRows } from './lease-rows.js'
import type { ListRows, Tab } from './list-rows.js'
import { listNodeRows } from './node-rows.js'
import { listTransferRows } from './transfer-rows.js'

const NOTHING: StatusSnapshot = {
  takenAtMs: 0,
  recordLocation: '',
  nodes: [],
  copies: [],
  layouts: [],
  leases: [],
  transfers: [],
  events: [],
}

/** The list that a tab shows. */
export function selectRows(
  snapshot: StatusSnapshot | undefined,
  tab: Tab,
  filter: string,
  sort: SortOrder,
): ListRows {
  const from = snapshot ?? NOTHING
  const words = filter.trim()
  switch (tab) {
    case 'copies':
      return listCopyRows(from, words, sort)
    case 'leases':
      return listLeaseRows(from, words)
    case 'transfers':
      return listTransferRows(from, words)
    case 'events':
      return listEventRows(from, words)
    case 'nodes':
      return listNodeRows(from, words)
  }
}
