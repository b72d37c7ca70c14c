import type { Lease } from '../../model/lease.js'

/** A stager renews its lease every second; one that was silent for so long takes nothing of the node's budget. */
const SILENT_STAGER_MS = 10_000
/** Two renewals may follow each other closely when the first was late. Requests for small objects end within this. */
const DRAIN_MS = 500

/** The part of a node's budget (requests, bytes per second) that each of its stagings takes: at least 1, so that none stands still. */
export function planNodeShare(budget: number, stagings: number): number {
  return Math.max(1, Math.floor(budget / Math.max(1, stagings)))
}

/** Those of a node's stage leases whose stagers are at work. `nowMs` is the clock of the record. */
export function findActiveStagers(stageLeases: readonly Lease[], nowMs: number): readonly Lease[] {
  return stageLeases.filter((lease) => nowMs - lease.renewedAtMs < SILENT_STAGER_MS)
}

/** For each older stager that has counted the stagings since, when it first did so. */
export type CountedSince = ReadonlyMap<string, number>

/**
 * Looks whether the others take no more than their share beside `own`, which the record shows since `sinceMs`. A
 * stager counts the stagings before each renewal of its lease, so whose lease was renewed after `sinceMs` has counted
 * `own`, too; what it had in flight above its new share has ended by its next renewal but for large parts. Who came later waits for `own`.
 * Give `noted` back at the next look.
 */
export function lookForOthers({
  own,
  sinceMs,
  active,
  noted,
}: {
  readonly own: Lease
  readonly sinceMs: number
  readonly active: readonly Lease[]
  readonly noted: CountedSince
}): { readonly noted: CountedSince; readonly haveMadeRoom: boolean } {
  const older = active.filter(
    (lease) => lease.leaseId !== own.leaseId && lease.createdAtMs <= own.createdAtMs,
  )
  const counted = older.filter(({ renewedAtMs }) => renewedAtMs > sinceMs)
  return {
    noted: new Map(counted.map(({ leaseId, renewedAtMs }) => [leaseId, noted.get(leaseId) ?? renewedAtMs])),
    haveMadeRoom: older.every(
      ({ leaseId, renewedAtMs }) =>
        renewedAtMs >= (noted.get(leaseId) ?? Number.POSITIVE_INFINITY) + DRAIN_MS,
    ),
  }
}
