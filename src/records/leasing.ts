import type { Copy } from '../model/copy.js'
import {
  formatHolder,
  type Lease,
  type LeaseHolder,
  type LeasePurpose,
  type LeaseRequest,
  type PlacedLease,
} from '../model/lease.js'
import { createUniqueId } from '../platform/unique-id.js'
import { writeEvent } from './event-writing.js'
import type { DeadLease, LeaseFilter, ReleaseFilter, Use, UseRequest } from './record-store.js'
import { formatStripe, toCopy, toLease } from './row-mapping.js'
import type { Durability, SqlReader, SqlRow, SqlTransaction, SqlValue } from './sql-database.js'

/** A lease of a process or pod dies with the machine, so it need not survive a power loss. */
export function leaseDurability(request: LeaseRequest): Durability {
  return request.holder.kind === 'process' ? 'quick' : 'durable'
}

/** Seed steps 2 and 3, in the caller's transaction: the newest ready copy on the node, leased; or undefined. */
export async function leaseReadyCopy(
  transaction: SqlTransaction,
  request: UseRequest,
  nowMs: number,
): Promise<Use | undefined> {
  const { dataset, node, lease, purpose = 'use', version, stripe } = request
  const row = await transaction.get(
    `SELECT copies.*, (SELECT lease_id FROM leases WHERE leases.copy_id = copies.copy_id
        AND purpose = ? AND task = ? AND holder = ?) AS own_lease_id
      FROM copies WHERE dataset = ? AND node = ? AND state = 'ready' AND coalesce(stripe, '') IN ('', ?)
        ${version === undefined ? '' : 'AND version = ?'}
      ORDER BY ready_at_ms DESC LIMIT 1`,
    [
      ...[purpose, lease.task, JSON.stringify(lease.holder), dataset, node, formatStripe(stripe) ?? ''],
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
    if (purpose === 'use') stampUse(transaction, copy, lease, nowMs)
  } else leaseId = addLease(transaction, copy, purpose, lease, nowMs)
  return { copy: { ...copy, lastTask: lease.task, lastUsedAtMs: nowMs }, leaseId }
}

const INSERT_LEASE = `INSERT INTO leases
  (lease_id, copy_id, purpose, task, holder, created_at_ms, renewed_at_ms, expires_at_ms)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

/** Gives `request` a lease on a copy of which it is known to have none for this purpose. Returns the lease's id. */
export function addLease(
  transaction: SqlTransaction,
  copy: Copy,
  purpose: LeasePurpose,
  request: LeaseRequest,
  nowMs: number,
): string {
  const values = leaseValues(copy, purpose, request, nowMs)
  transaction.post(INSERT_LEASE, values)
  if (purpose === 'use') stampUse(transaction, copy, request, nowMs)
  return values[0]
}

/**
 * Gives `request` a lease on the copy, or renews the one it has; stamps last task and last use.
 * Returns the lease's id.
 */
export async function grantLease(
  transaction: SqlTransaction,
  copy: Copy,
  purpose: LeasePurpose,
  request: LeaseRequest,
  nowMs: number,
): Promise<string> {
  const rows = await transaction.all(
    `${INSERT_LEASE} ON CONFLICT (copy_id, purpose, task, holder)
      DO UPDATE SET renewed_at_ms = excluded.renewed_at_ms, expires_at_ms = excluded.expires_at_ms
      RETURNING lease_id`,
    leaseValues(copy, purpose, request, nowMs),
  )
  if (purpose === 'use') stampUse(transaction, copy, request, nowMs)
  return String(rows[0]!.lease_id)
}

function leaseValues(copy: Copy, purpose: LeasePurpose, request: LeaseRequest, nowMs: number) {
  const holder = JSON.stringify(request.holder)
  const id = createUniqueId()
  return [id, copy.copyId, purpose, request.task, holder, nowMs, nowMs, request.expiresAtMs] as const
}

function stampUse(transaction: SqlTransaction, copy: Copy, { task }: LeaseRequest, nowMs: number): void {
  transaction.post('UPDATE copies SET last_task = ?, last_used_at_ms = ? WHERE copy_id = ?', [
    task,
    nowMs,
    copy.copyId,
  ])
}

/** Changes the holder of a lease. One that the new holder has already, for the same task and copy, ends in its favour. */
export async function handOver(
  transaction: SqlTransaction,
  leaseId: string,
  holder: LeaseHolder,
  nowMs: number,
): Promise<boolean> {
  const text = JSON.stringify(holder)
  transaction.post(
    `DELETE FROM leases WHERE lease_id <> ? AND holder = ? AND EXISTS (SELECT 1 FROM leases mine
      WHERE mine.lease_id = ? AND mine.copy_id = leases.copy_id AND mine.purpose = leases.purpose
        AND mine.task = leases.task)`,
    [leaseId, text, leaseId],
  )
  const changed = await transaction.run(
    'UPDATE leases SET holder = ?, renewed_at_ms = ? WHERE lease_id = ?',
    [text, nowMs, leaseId],
  )
  return changed > 0
}

/** Leases that match, oldest first. */
export async function selectLeases(
  reader: SqlReader,
  filter: LeaseFilter & ReleaseFilter,
): Promise<readonly PlacedLease[]> {
  return (await selectLeaseRows(reader, filter)).map((row) => ({
    ...toLease(row),
    dataset: String(row.dataset),
    node: String(row.node),
  }))
}

/** Ends the use leases that match, each with a line in the history. */
export async function releaseUseLeases(
  transaction: SqlTransaction,
  filter: ReleaseFilter,
  nowMs: number,
): Promise<number> {
  const rows = await selectLeaseRows(transaction, filter)
  const uses = rows.filter((row) => row.purpose !== 'stage')
  for (const row of uses) endLease(transaction, row, 'released', `${row.task} released it`, nowMs)
  return uses.length
}

/** Ends leases found dead and leases past their expiry. */
export async function endDeadLeases(
  transaction: SqlTransaction,
  dead: readonly DeadLease[],
  nowMs: number,
): Promise<readonly Lease[]> {
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
    endLease(transaction, row, 'lease-expired', `${lease.task} (${formatHolder(lease)}): ${reason}`, nowMs)
  }
  return [...found.values()].map(toLease)
}

const SELECT_LEASES =
  'SELECT leases.*, copies.dataset, copies.node FROM leases JOIN copies ON copies.copy_id = leases.copy_id'

async function selectLeaseRows(
  reader: SqlReader,
  filter: LeaseFilter & ReleaseFilter,
): Promise<readonly SqlRow[]> {
  const conditions: [string, SqlValue | undefined][] = [
    ['copies.dataset = ?', filter.dataset],
    ['copies.node = ?', filter.node],
    ['leases.copy_id = ?', filter.copyId],
    ['leases.purpose = ?', filter.purpose],
    ['leases.task = ?', filter.task],
    ['leases.lease_id = ?', filter.leaseId],
  ]
  const given = conditions.filter((condition): condition is [string, SqlValue] => condition[1] !== undefined)
  const where = given.length > 0 ? `WHERE ${given.map(([condition]) => condition).join(' AND ')}` : ''
  return reader.all(
    `${SELECT_LEASES} ${where} ORDER BY leases.created_at_ms, leases.lease_id`,
    given.map(([, value]) => value),
  )
}

function endLease(
  transaction: SqlTransaction,
  row: SqlRow,
  kind: 'released' | 'lease-expired',
  reason: string,
  nowMs: number,
): void {
  transaction.post('DELETE FROM leases WHERE lease_id = ?', [row.lease_id!])
  writeEvent(transaction, {
    atMs: nowMs,
    kind,
    node: String(row.node),
    dataset: String(row.dataset),
    copyId: String(row.copy_id),
    task: String(row.task),
    reason,
    detail: { leaseId: row.lease_id, purpose: row.purpose },
  })
}
