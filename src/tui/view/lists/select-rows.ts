import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import type { Throughput } from '../../../cache/status/throughput.js'
import { findList, type Scope, type ScreenState } from '../screen-state.js'
import { listCopyRows } from './copy-rows.js'
import { listDatasetRows } from './dataset-rows.js'
import { listEventRows } from './event-rows.js'
import { listJobRows } from './job-rows.js'
import { listLeaseRows } from './lease-rows.js'
import type { ListChoice, ListName, ListRows } from './list-rows.js'
import { listNodeRows } from './node-rows.js'
import { listShareRows } from './share-rows.js'

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

/** The list that the screen shows. */
export function selectRows(
  snapshot: StatusSnapshot | undefined,
  { tab, grouped, filter, sorts, scope }: Pick<ScreenState, 'tab' | 'grouped' | 'filter' | 'sorts' | 'scope'>,
  throughput: Throughput,
): ListRows {
  const list = findList({ tab, grouped })
  const sort = sorts[list]
  const choice = { filter: filter.trim(), sort, throughput }
  const rows = LISTS[list](narrow(snapshot ?? NOTHING, scope), choice)
  return sort ? { ...rows, sortedBy: sort.column } : rows
}

const LISTS: Readonly<Record<ListName, (from: StatusSnapshot, choice: ListChoice) => ListRows>> = {
  copies: listCopyRows,
  datasets: listDatasetRows,
  leases: listLeaseRows,
  jobs: listJobRows,
  events: listEventRows,
  nodes: listNodeRows,
  shares: listShareRows,
}

/** Keeps the items on one node, of one dataset or job, or with a lease on one copy. Keeps all nodes. */
function narrow(snapshot: StatusSnapshot, scope: Scope | undefined): StatusSnapshot {
  if (!scope) return snapshot
  const isIn = (row: { readonly node: string; readonly dataset: string; readonly copyId?: string | null }) =>
    (scope.node === undefined || row.node === scope.node) &&
    (scope.dataset === undefined || row.dataset === scope.dataset) &&
    (scope.copyId === undefined || row.copyId === undefined || row.copyId === scope.copyId)
  const isOfTask = ({ task }: { readonly task: string }) => scope.task === undefined || task === scope.task
  return {
    ...snapshot,
    copies: snapshot.copies.filter(isIn),
    leases: snapshot.leases.filter((lease) => isIn(lease) && isOfTask(lease)),
    transfers: snapshot.transfers.filter(isIn),
    // A refused job has no copy.
    waits: scope.copyId === undefined ? snapshot.waits.filter((wait) => isIn(wait) && isOfTask(wait)) : [],
    events: snapshot.events.filter(isIn),
  }
}
