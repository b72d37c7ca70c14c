import type { Lease } from '../../model/lease.js'

/** A stager renews its lease every second; one silent for this long gets no share of the node's budget. */
const SILENT_STAGER_MS = 10_000
/** Two renewals may come in quick succession if the first was late. Requests for small objects end within this time. */
const DRAIN_MS = 500

/** Each staging's share of a node's budget (requests, bytes per second): at least 1, so that none stands still. */
export function planNodeShare(budget: number, stagings: number): number {
  return Math.max(1, Math.floor(budget / Math.max(1, stagings)))
}

/** The stage leases of a node whose stagers are active. `nowMs` is the record's clock. */
export function findActiveStagers(stageLeases: readonly Lease[], nowMs: number): readonly Lease[] {
  return stageLeases.filter((lease) => nowMs - lease.renewedAtMs < SILENT_STAGER_MS)
}

/** For each older stager that has counted the stagings since: the time of its first count. */
export type CountedSince = ReadonlyMap<string, number>

/**
 * Tells whether the other stagers keep to their share beside `own`, which the record shows since `sinceMs`. A stager
 * counts the stagings before each renewal of its lease, so a lease renewed after `sinceMs` means that its stager has
 * counted `own` too. Its requests above the new share end by its next renewal, except for large parts. Later stagers
 * wait for `own`. Pass `noted` to the next call.
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
