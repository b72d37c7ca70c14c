import { formatHolder, type Lease } from '../../model/lease.js'
import type { DeadLease, ReleaseFilter } from '../contract/record-requests.js'
import { toLease } from '../database/row-mapping.js'
import type { SqlRow } from '../database/sql-database.js'
import { SELECT_LEASES, selectLeaseRows } from '../select/select-leases.js'
import type { RecordWrite } from './record-write.js'
import { writeCopyEvent } from './write-event.js'

/** Ends the matching use leases, each with a line in the history. */
export async function releaseUseLeases(
  write: RecordWrite,
  filter: ReleaseFilter,
  by?: string,
): Promise<number> {
  const rows = await selectLeaseRows(write.transaction, filter)
  const uses = rows.filter((row) => row.purpose !== 'stage')
  for (const row of uses)
    endLease(write, row, { kind: 'released', reason: `${by ?? row.task} released it`, by })
  return uses.length
}

/** Ends the leases of dead holders and expired leases. */
export async function endDeadLeases(
  write: RecordWrite,
  dead: readonly DeadLease[],
): Promise<readonly Lease[]> {
  const { transaction, nowMs } = write
  const reasons = new Map(dead.map(({ leaseId, reason }) => [leaseId, reason]))
  const expired = await transaction.all(`${SELECT_LEASES} WHERE leases.expires_at_ms <= ?`, [nowMs])
  const found = new Map(expired.map((row) => [String(row.lease_id), row]))
  for (const leaseId of reasons.keys()) {
    const row = await transaction.get(`${SELECT_LEASES} WHERE leases.lease_id = ?`, [leaseId])
    if (row) found.set(leaseId, row)
  }
  for (const [leaseId, row] of found) {
    const lease = toLease(row)
    const reason = reasons.get(leaseId) ?? `expired at ${new Date(lease.expiresAtMs!).toISOString()}`
    endLease(write, row, {
      kind: 'lease-expired',
      reason: `${lease.task} (${formatHolder(lease)}): ${reason}`,
    })
  }
  return [...found.values()].map(toLease)
}

function endLease(
  write: RecordWrite,
  row: SqlRow,
  {
    by,
    ...why
  }: {
    readonly kind: 'released' | 'lease-expired'
    readonly reason: string
    /** The user whose deed it is: the history keeps what the same lease needs. */
    readonly by?: string | undefined
  },
): void {
  write.transaction.post('DELETE FROM leases WHERE lease_id = ?', [row.lease_id!])
  const copy = { copyId: String(row.copy_id), dataset: String(row.dataset), node: String(row.node) }
  writeCopyEvent(write, copy, {
    ...why,
    task: String(row.task),
    detail: {
      leaseId: row.lease_id,
      purpose: row.purpose,
      ...(by !== undefined && { by, lease: toLease(row) }),
    },
  })
}
