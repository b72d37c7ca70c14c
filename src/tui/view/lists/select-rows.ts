import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import type { ScreenState } from '../screen-state.js'
import { listCopyRows } from './copy-rows.js'
import { listEventRows } from './event-rows.js'
import { listLeaseRows } from './lease-rows.js'
import type { ListRows } from './list-rows.js'
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
  waits: [],
  events: [],
}

/** The list that a tab shows. */
export function selectRows(
  snapshot: StatusSnapshot | undefined,
  { tab, filter, sort }: Pick<ScreenState, 'tab' | 'filter' | 'sort'>,
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
