import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import { formatHolder, isLeaseLive, type PlacedLease } from '../../../model/lease.js'
import type { ColumnSpec } from '../text/column-layout.js'
import { formatSpan } from '../text/format-cells.js'
import { span } from '../text/styled-line.js'
import { type ListChoice, type ListRows, matchesFilter, widthOf } from './list-rows.js'
import { type SortValues, sortRows } from './sort-rows.js'

const SORT_VALUES: SortValues<PlacedLease> = {
  TASK: ({ task }) => task,
  DATASET: ({ dataset }) => dataset,
  NODE: ({ node }) => node,
  FOR: ({ purpose }) => purpose,
  SINCE: ({ createdAtMs }) => -createdAtMs,
  'ENDS IN': ({ expiresAtMs }) => -(expiresAtMs ?? Number.POSITIVE_INFINITY),
  HOLDER: formatWho,
}

function planColumns({ leases }: StatusSnapshot): readonly ColumnSpec[] {
  const task = widthOf(
    leases.values().map((lease) => lease.task),
    4,
    40,
  )
  const name = widthOf(
    leases.values().map((lease) => lease.dataset),
    7,
    60,
  )
  const node = widthOf(
    leases.values().map((lease) => lease.node),
    4,
    24,
  )
  const purpose = widthOf(
    leases.values().map((lease) => lease.purpose),
    3,
    8,
  )
  const holder = widthOf(leases.values().map(formatWho), 6, 28)
  // Task, copy and age stay visible longest.
  return [
    { title: 'TASK', width: task, minWidth: Math.min(task, 20), grow: 1 },
    { title: 'DATASET', width: name, minWidth: Math.min(name, 20), grow: 1 },
    { title: 'NODE', width: node, minWidth: Math.min(node, 10), dropOrder: 2 },
    { title: 'FOR', width: purpose, dropOrder: 4 },
    { title: 'SINCE', width: 5, align: 'right' },
    { title: 'ENDS IN', width: 7, align: 'right', dropOrder: 3 },
    { title: 'HOLDER', width: holder, minWidth: Math.min(holder, 12), grow: 1, dropOrder: 1 },
  ]
}

/** The holder in few cells: `gpu-07:4711` is a process. */
function formatWho(lease: PlacedLease): string {
  const { holder } = lease
  if (holder.kind === 'process') return `${holder.host}:${holder.pid}`
  return holder.kind === 'ttl' ? 'ttl' : formatHolder(lease)
}

/** Leases that match the filter, in the record's order. */
export function listLeaseRows(snapshot: StatusSnapshot, { filter, sort }: ListChoice): ListRows {
  const found =
    filter === ''
      ? snapshot.leases
      : snapshot.leases.filter((lease) =>
          matchesFilter(filter, [
            lease.task,
            lease.dataset,
            lease.node,
            lease.purpose,
            formatHolder(lease),
            formatWho(lease),
          ]),
        )
  const leases = sortRows(found, sort, SORT_VALUES)
  return {
    tab: 'leases',
    columns: planColumns(snapshot),
    sortable: Object.keys(SORT_VALUES),
    keys: leases.map((lease) => lease.leaseId),
    total: snapshot.leases.length,
    copyIdAt: (index) => leases[index]?.copyId,
    leaseAt: (index) => leases[index],
    drawAt: (index, _widths, { nowMs }) => {
      const lease = leases[index]!
      const isLive = isLeaseLive(lease, nowMs)
      const ends =
        lease.expiresAtMs === null ? '-' : isLive ? formatSpan(lease.expiresAtMs - nowMs) : 'expired'
      return [
        span(lease.task),
        span(lease.dataset),
        span(lease.node),
        span(lease.purpose, lease.purpose === 'use' ? {} : { color: 'cyan' }),
        span(formatSpan(nowMs - lease.createdAtMs)),
        span(ends, isLive ? {} : { color: 'yellow' }),
        span(formatWho(lease), { isDim: true }),
      ]
    },
    emptyText: filter === '' ? 'No leases' : 'No lease matches the filter',
  }
}
