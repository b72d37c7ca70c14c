import { formatHolder, isLeaseLive, type PlacedLease } from '../../model/lease.js'
import { formatSpan } from '../../tui/view/text/format-cells.js'
import type { TableColumn } from './text-table.js'

/** A lease, and why it counts no more. */
export interface ShownLease extends PlacedLease {
  readonly staleReason: string | null
}

/** The columns of `dsc leases`: who keeps what, until when. */
export const LEASE_COLUMNS: readonly TableColumn[] = [
  { title: 'TASK', minWidth: 12 },
  { title: 'DATASET', minWidth: 10 },
  { title: 'NODE', minWidth: 7, dropOrder: 2 },
  { title: 'FOR' },
  { title: 'SINCE', align: 'right' },
  { title: 'ENDS IN', align: 'right' },
  { title: 'HOLDER', minWidth: 12, dropOrder: 3 },
  { title: 'STALE BECAUSE', minWidth: 14, dropOrder: 1, isLeftOutWhereEmpty: true },
]

/** A lease's row under `LEASE_COLUMNS`. */
export function leaseCells(lease: ShownLease, nowMs: number): readonly string[] {
  const endsIn = (atMs: number) => (isLeaseLive(lease, nowMs) ? formatSpan(atMs - nowMs) : 'expired')
  return [
    lease.task,
    lease.dataset,
    lease.node,
    lease.purpose,
    formatSpan(nowMs - lease.createdAtMs),
    lease.expiresAtMs === null ? '-' : endsIn(lease.expiresAtMs),
    lease.holder.kind === 'ttl' ? 'ttl' : formatHolder(lease),
    lease.staleReason ?? '-',
  ]
}
