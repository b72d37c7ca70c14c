import type { CachePolicy, DiskUsage } from '../model/policy.js'

/** What the copies of one node take at present, by the record. */
export interface CacheLoad {
  readonly datasets: number
  readonly bytes: number
  /** Bytes and inodes that admitted copies may still write. */
  readonly outstandingBytes: number
  readonly outstandingInodes: number
}

/** What a request asks for. */
export interface SpaceRequest {
  readonly datasets: number
  readonly bytes: number
  readonly inodes: number
}

export type Limit = 'maxDatasets' | 'maxPercent' | 'minFree' | 'inodes'

/** By how much a request overshoots one limit. All amounts are 0 or more; `missing` is above 0. */
export interface Shortfall {
  readonly limit: Limit
  /** What the limit allows in all. */
  readonly allowed: number
  /** What is taken already (for `minFree` and `inodes`: what is promised to others). */
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
export function findShortfalls(
  policy: CachePolicy,
  disk: DiskUsage,
  load: CacheLoad,
  request: SpaceRequest,
): readonly Shortfall[] {
  const shortfalls: Shortfall[] = []
  const check = (limit: Limit, allowed: number, taken: number, needed: number) => {
    const missing = taken + needed - allowed
    if (missing > 0) shortfalls.push({ limit, allowed: Math.max(0, allowed), taken, needed, missing })
  }
  if (policy.maxDatasets !== undefined) {
    check('maxDatasets', policy.maxDatasets, load.datasets, request.datasets)
  }
  check('maxPercent', quotaBytes(policy, disk), load.bytes, request.bytes)
  check('minFree', disk.freeBytes - (policy.minFreeBytes ?? 0), load.outstandingBytes, request.bytes)
  if (disk.inodesTotal > 0) check('inodes', disk.inodesFree, load.outstandingInodes, request.inodes)
  return shortfalls
}
