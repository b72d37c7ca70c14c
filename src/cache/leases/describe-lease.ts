import { formatTime } from '../../model/format-time.js'
import type { PlacedLease } from '../../model/lease.js'
import type { HeldLeaseAnswer, LeaseAnswer } from './lease-answer.js'

/** A lease on a copy, in the form that every answer uses. */
export function describeLease(lease: PlacedLease): LeaseAnswer {
  return {
    leaseId: lease.leaseId,
    dataset: lease.dataset,
    node: lease.node,
    copyId: lease.copyId,
    task: lease.task,
    purpose: lease.purpose,
    holder: lease.holder,
    createdAt: formatTime(lease.createdAtMs),
    renewedAt: formatTime(lease.renewedAtMs),
    expiresAt: lease.expiresAtMs === null ? null : formatTime(lease.expiresAtMs),
  }
}

/** A lease with the reason why it no longer counts; null = it counts. */
export function describeHeldLease({
  staleReason,
  ...lease
}: PlacedLease & { readonly staleReason: string | null }): HeldLeaseAnswer {
  return { ...describeLease(lease), staleReason }
}
