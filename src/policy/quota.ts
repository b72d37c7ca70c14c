import type { CachePolicy, DiskUsage } from '../model/policy.js'

/** The current load of one node's copies, according to the record. */
export interface CacheLoad {
  readonly datasets: number
  readonly bytes: number
  /** Bytes and inodes that admitted copies may still write. */
  readonly outstandingBytes: number
  readonly outstandingInodes: number
}

/** The space that a request needs. */
export interface SpaceRequest {
  readonly datasets: number
  readonly bytes: number
  readonly inodes: number
}

/** A limit of the cache that a request can exceed. */
export type Limit = 'maxDatasets' | 'maxPercent' | 'minFree' | 'inodes'

/** How far a request exceeds one limit. All amounts are 0 or more; `missing` is above 0. */
export interface Shortfall {
  readonly limit: Limit
  /** The total that the limit allows. */
  readonly allowed: number
  /** The amount already taken (for `minFree` and `inodes`: already promised to others). */
  readonly taken: number
  readonly needed: number
  readonly missing: number
}

/** Bytes that `maxPercent` allows copies to take, never above the capacity; Infinity without the limit. */
export function quotaBytes(policy: CachePolicy, disk: DiskUsage): number {
  if (policy.maxPercent === undefined) return Number.POSITIVE_INFINITY
  return Math.floor((disk.capacityBytes * Math.min(100, Math.max(0, policy.maxPercent))) / 100)
}

/**
 * Finds every limit that the request would break, in the order of the policy's fields. Empty = it fits.
 *
 * | limit       | holds while                                               |
 * |-------------|-----------------------------------------------------------|
 * | maxDatasets | datasets + request ≤ maxDatasets                          |
 * | maxPercent  | bytes charged + request ≤ percent of the capacity         |
 * | minFree     | free − outstanding − request ≥ minFreeBytes (0 if unset)  |
 * | inodes      | free − outstanding − request ≥ 0, unless the total is 0   |
 *
 * `minFree` is checked even when unset: a download that cannot fit on the disk is refused, not begun.
 */
export function findShortfalls(input: {
  readonly policy: CachePolicy
  readonly disk: DiskUsage
  readonly load: CacheLoad
  readonly request: SpaceRequest
}): readonly Shortfall[] {
  const { policy, disk, load, request } = input
  const shortfalls: Shortfall[] = []
  const check = (limit: Limit, amounts: { allowed: number; taken: number; needed: number }) => {
    const missing = amounts.taken + amounts.needed - amounts.allowed
    if (missing > 0) shortfalls.push({ limit, ...amounts, allowed: Math.max(0, amounts.allowed), missing })
  }
  const datasets = policy.maxDatasets ?? Number.POSITIVE_INFINITY
  check('maxDatasets', { allowed: datasets, taken: load.datasets, needed: request.datasets })
  check('maxPercent', { allowed: quotaBytes(policy, disk), taken: load.bytes, needed: request.bytes })
  const toSpare = disk.freeBytes - (policy.minFreeBytes ?? 0)
  check('minFree', { allowed: toSpare, taken: load.outstandingBytes, needed: request.bytes })
  const inodes = disk.inodesTotal > 0 ? disk.inodesFree : Number.POSITIVE_INFINITY
  check('inodes', { allowed: inodes, taken: load.outstandingInodes, needed: request.inodes })
  return shortfalls
}
