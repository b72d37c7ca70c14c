import type { Copy } from '../../model/copy.js'
import type { LeaseHolder, LeasePurpose, LeaseRequest } from '../../model/lease.js'
import { createUniqueId } from '../../platform/unique-id.js'
import type { Use, UseRequest } from '../contract/record-requests.js'
import { stripeValue, toCopy } from '../database/row-mapping.js'
import type { Durability } from '../database/sql-database.js'
import type { RecordWrite } from './record-write.js'

/** A lease of a process or pod dies with the machine, so it need not survive a power loss. */
export function leaseDurability(request: LeaseRequest): Durability {
  return request.holder.kind === 'process' ? 'quick' : 'durable'
}

/** Seed steps 2 and 3, in the caller's transaction: leases the newest ready copy on the node, or returns undefined. */
export async function leaseReadyCopy(write: RecordWrite, request: UseRequest): Promise<Use | undefined> {
  const { transaction, nowMs } = write
  const { dataset, node, lease, purpose = 'use', version, stripe } = request
  const row = await transaction.get(
    `SELECT copies.*, (SELECT lease_id FROM leases WHERE leases.copy_id = copies.copy_id
        AND purpose = ? AND task = ? AND holder = ?) AS own_lease_id
      FROM copies WHERE dataset = ? AND node = ? AND state = 'ready' AND coalesce(stripe, '') IN ('', ?)
        ${version === undefined ? '' : 'AND version = ?'}
      ORDER BY ready_at_ms DESC LIMIT 1`,
    [
      purpose,
      lease.task,
      JSON.stringify(lease.holder),
      dataset,
      node,
      stripeValue(stripe) ?? '',
      ...(version === undefined ? [] : [version]),
    ],
  )
  if (row === undefined) return undefined
  const copy = toCopy(row)
  if (request.accept?.(copy) === false) return undefined
  let leaseId: string
  if (typeof row.own_lease_id === 'string') {
    leaseId = row.own_lease_id
    transaction.post('UPDATE leases SET renewed_at_ms = ?, expires_at_ms = ? WHERE lease_id = ?', [
      nowMs,
      lease.expiresAtMs,
      leaseId,
    ])
    if (purpose === 'use') stampUse(write, copy, lease)
  } else leaseId = addLease(write, { copy, purpose, lease })
  return { copy: { ...copy, lastTask: lease.task, lastUsedAtMs: nowMs }, leaseId }
}

/** A lease to grant: on which copy, for which purpose, to which holder. */
interface Grant {
  readonly copy: Copy
  readonly purpose: LeasePurpose
  readonly lease: LeaseRequest
}

const INSERT_LEASE = `INSERT INTO leases
  (lease_id, copy_id, purpose, task, holder, created_at_ms, renewed_at_ms, expires_at_ms, node)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** Gives `request` a lease on a copy for a purpose for which it is known to have none. Returns the lease's id. */
export function addLease(write: RecordWrite, grant: Grant): string {
  const values = leaseValues(grant, write.nowMs)
  write.transaction.post(INSERT_LEASE, values)
  if (grant.purpose === 'use') stampUse(write, grant.copy, grant.lease)
  return values[0]
}

/**
 * Gives `request` a lease on the copy, or renews the existing one; stamps last task and last use. Returns the lease's
 * id.
 */
export async function grantLease(write: RecordWrite, grant: Grant): Promise<string> {
  const rows = await write.transaction.all(
    `${INSERT_LEASE} ON CONFLICT (copy_id, purpose, task, holder)
      DO UPDATE SET renewed_at_ms = excluded.renewed_at_ms, expires_at_ms = excluded.expires_at_ms
      RETURNING lease_id`,
    leaseValues(grant, write.nowMs),
  )
  if (grant.purpose === 'use') stampUse(write, grant.copy, grant.lease)
  return String(rows[0]!.lease_id)
}

function leaseValues({ copy, purpose, lease }: Grant, nowMs: number) {
  const holder = JSON.stringify(lease.holder)
  const id = createUniqueId()
  return [id, copy.copyId, purpose, lease.task, holder, nowMs, nowMs, lease.expiresAtMs, copy.node] as const
}

function stampUse({ transaction, nowMs }: RecordWrite, copy: Copy, { task, parties }: LeaseRequest): void {
  transaction.post(
    'UPDATE copies SET last_task = ?, last_used_at_ms = ?, parties = coalesce(?, parties) WHERE copy_id = ?',
    [task, nowMs, parties ? JSON.stringify(parties) : null, copy.copyId],
  )
}

/** Changes the holder of a lease. Ends the one that the new holder already has for the same task and copy. */
export async function handOver(
  { transaction, nowMs }: RecordWrite,
  leaseId: string,
  holder: LeaseHolder,
): Promise<boolean> {
  const text = JSON.stringify(holder)
  transaction.post(
    `DELETE FROM leases WHERE lease_id <> ? AND holder = ? AND (copy_id, purpose, task) =
      (SELECT copy_id, purpose, task FROM leases mine WHERE mine.lease_id = ?)`,
    [leaseId, text, leaseId],
  )
  const changed = await transaction.run(
    'UPDATE leases SET holder = ?, renewed_at_ms = ? WHERE lease_id = ?',
    [text, nowMs, leaseId],
  )
  return changed > 0
}
