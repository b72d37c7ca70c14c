import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import type { WaitStatus } from '../../../cache/status/list-waits.js'
import { formatHolder, formatUid, isLeaseLive, type PlacedLease } from '../../../model/lease.js'
import type { ColumnSpec } from '../text/column-layout.js'
import { formatSpan } from '../text/format-cells.js'
import { span } from '../text/styled-line.js'
import { type Cell, type ListChoice, type ListRows, matchesFilter, widthOf } from './list-rows.js'
import { type SortValues, sortRows } from './sort-rows.js'

/** A lease, or a job that got none: it was refused room. */
interface LeaseRow {
  readonly task: string
  readonly dataset: string
  readonly node: string
  readonly purpose: PlacedLease['purpose'] | 'refused'
  readonly sinceMs: number
  /** Unix epoch in ms; null: without an end of its own. */
  readonly expiresAtMs: number | null
  /** The holder in few cells, or why the job was refused. */
  readonly who: string
  readonly lease?: PlacedLease
  /** Whether the job still waits for its copy. */
  readonly isWaiting: boolean
}

const SORT_VALUES: SortValues<LeaseRow> = {
  TASK: ({ task }) => task,
  DATASET: ({ dataset }) => dataset,
  NODE: ({ node }) => node,
  FOR: ({ purpose }) => purpose,
  SINCE: ({ sinceMs }) => -sinceMs,
  'ENDS IN': ({ expiresAtMs }) => -(expiresAtMs ?? Number.POSITIVE_INFINITY),
  HOLDER: ({ who }) => who,
}

function planColumns(rows: readonly LeaseRow[]): readonly ColumnSpec[] {
  const task = widthOf(rows, (row) => row.task, [4, 40])
  const name = widthOf(rows, (row) => row.dataset, [7, 60])
  const node = widthOf(rows, (row) => row.node, [4, 24])
  const purpose = widthOf(rows, (row) => row.purpose, [3, 8])
  const holder = widthOf(rows, (row) => (row.lease ? row.who : ''), [6, 28])
  // Task, copy and age stay visible longest.
  return [
    { title: 'TASK', width: task, minWidth: Math.min(task, 20), grow: 1 },
    { title: 'DATASET', width: name, minWidth: Math.min(name, 20), grow: 1 },
    { title: 'NODE', width: node, minWidth: Math.min(node, 10), dropOrder: 2 },
    { title: 'FOR', width: purpose, dropOrder: 4 },
    { title: 'SINCE', width: 5, align: 'right' },
    { title: 'ENDS IN', width: 7, align: 'right', dropOrder: 3 },
    { title: 'HOLDER', width: holder, minWidth: Math.min(holder, 12), grow: 2, dropOrder: 1 },
  ]
}

/** The holder in few cells: `gpu-07:4711` is a process. */
function formatWho(lease: PlacedLease): string {
  const { holder } = lease
  if (holder.kind === 'process') return `${holder.host}:${holder.pid}`
  if (holder.kind !== 'ttl') return formatHolder(lease)
  return holder.userId === undefined ? 'ttl' : `ttl, ${formatUid(holder.userId)}`
}

/** Jobs that were refused, then the leases in the record's order. */
export function listLeaseRows(snapshot: StatusSnapshot, { filter, sort }: ListChoice): ListRows {
  const coming = new Set(snapshot.transfers.map(({ copyId }) => copyId))
  const all = [
    ...snapshot.waits.filter(({ kind }) => kind === 'room').map(toRefused),
    ...snapshot.leases.map((lease) => toRow(lease, coming)),
  ]
  const found = all.filter((row) =>
    matchesFilter(filter, [
      row.task,
      row.dataset,
      row.node,
      row.purpose,
      row.lease ? formatHolder(row.lease) : null,
      row.who,
      row.isWaiting ? 'waits' : null,
    ]),
  )
  const rows = sortRows(found, sort, SORT_VALUES)
  return {
    list: 'leases',
    columns: planColumns(all),
    sortable: Object.keys(SORT_VALUES),
    keys: rows.map(
      ({ lease, task, dataset, node }) => lease?.leaseId ?? `refused ${task} ${dataset} ${node}`,
    ),
    total: all.length,
    copyIdAt: (index) => rows[index]?.lease?.copyId,
    leaseAt: (index) => rows[index]?.lease,
    scopeAt: (index) => {
      const node = rows[index]?.node
      return node === undefined ? undefined : { node, label: node, opens: 'copies' as const }
    },
    drawAt: (index, _widths, { nowMs }) => drawRow(rows[index]!, nowMs),
    emptyText: filter === '' ? 'No leases' : 'No lease matches the filter',
  }
}

function toRow(lease: PlacedLease, coming: ReadonlySet<string>): LeaseRow {
  const { task, dataset, node, purpose, createdAtMs, expiresAtMs, copyId } = lease
  const isWaiting = purpose === 'use' && coming.has(copyId)
  return {
    task,
    dataset,
    node,
    purpose,
    sinceMs: createdAtMs,
    expiresAtMs,
    who: formatWho(lease),
    lease,
    isWaiting,
  }
}

function toRefused({ task, dataset, node, sinceMs, reason }: WaitStatus): LeaseRow {
  const who = reason.replaceAll(/\s*\n\s*/g, '; ')
  return { task, dataset, node, purpose: 'refused', sinceMs, expiresAtMs: null, who, isWaiting: true }
}

function drawRow(row: LeaseRow, nowMs: number): readonly Cell[] {
  const { lease, purpose, isWaiting } = row
  const isLive = lease === undefined || isLeaseLive(lease, nowMs)
  const ends = row.expiresAtMs === null ? '-' : isLive ? formatSpan(row.expiresAtMs - nowMs) : 'expired'
  const color = purpose === 'refused' ? ('red' as const) : ('cyan' as const)
  return [
    span(row.task),
    span(row.dataset),
    span(row.node),
    span(purpose, purpose === 'use' ? {} : { color, isBold: purpose === 'refused' }),
    span(formatSpan(nowMs - row.sinceMs)),
    isWaiting && lease ? span('waits', { color: 'yellow' }) : span(ends, isLive ? {} : { color: 'yellow' }),
    span(row.who, lease ? { isDim: true } : { color: 'red' }),
  ]
}
