import type { Lease } from '../../model/lease.js'

/** A stager renews its lease every second; one that was silent for so long takes nothing of the node's budget. */
const SILENT_STAGER_MS = 10_000

/** The part of a node's budget (requests, bytes per second) that each of its stagings takes: at least 1, so that none stands still. */
export function planNodeShare(budget: number, stagings: number): number {
  return Math.max(1, Math.floor(budget / Math.max(1, stagings)))
}

/** Those of a node's stage leases whose stagers are at work. `nowMs` is the clock of the record. */
export function findActiveStagers(stageLeases: readonly Lease[], nowMs: number): readonly Lease[] {
  return stageLeases.filter((lease) => nowMs - lease.renewedAtMs < SILENT_STAGER_MS)
}

/**
 * Whether the others take no more than their share beside `own`: each that was there before renewed its lease at
 * least `giveWayMs` after `own` began. Renewing, a stager counts the stagings; what it has in flight above its new
 * share ends by the time of the next.
 */
export function haveOthersGivenWay(own: Lease, active: readonly Lease[], giveWayMs: number): boolean {
  return active.every(
    (other) =>
      other.leaseId === own.leaseId ||
      other.createdAtMs > own.createdAtMs ||
      other.renewedAtMs >= own.createdAtMs + giveWayMs,
  )
}
