import type { CachePolicy, DiskUsage } from '../model/policy.js'
import { type CacheLoad, findShortfalls, quotaBytes } from './quota.js'

/** How long an evicted copy can be taken back, in ms. */
export const KEPT_MS = 24 * 3_600_000

/** An evicted copy in the trash: when it was evicted (Unix epoch, ms), and the space that it takes. */
export interface KeptSpace {
  readonly evictedAtMs: number
  readonly diskBytes: number
  readonly inodes: number
}

/**
 * Chooses which evicted copies leave the trash now: those older than a day, then the oldest until the disk has room for
 * what is admitted, `minFree`, and `marginBytes` beside it, and until copies and trash together are within
 * `maxPercent`: on a disk that kubelet watches, the rest of it keeps pods from being evicted. `kept` is oldest first;
 * `disk` is as measured, with the kept copies on it.
 */
export function planDrops<Kept extends KeptSpace>(input: {
  readonly kept: readonly Kept[]
  readonly disk: DiskUsage
  readonly load: CacheLoad
  readonly policy: CachePolicy
  readonly nowMs: number
  readonly marginBytes: number
}): readonly (Kept & { readonly reason: string })[] {
  const { kept, load, policy, nowMs } = input
  const request = { datasets: 0, bytes: input.marginBytes, inodes: 0 }
  const ofDisk = { minFreeBytes: policy.minFreeBytes }
  const allowedBytes = quotaBytes(policy, input.disk)
  let takenBytes = kept.reduce((sum, { diskBytes }) => sum + diskBytes, load.bytes)
  let disk = input.disk
  return kept.flatMap((copy) => {
    const isOld = Math.abs(nowMs - copy.evictedAtMs) > KEPT_MS // ahead: the clock was wrong
    const isNeeded =
      takenBytes > allowedBytes || findShortfalls({ policy: ofDisk, disk, load, request }).length > 0
    if (!isOld && !isNeeded) return []
    takenBytes -= copy.diskBytes
    disk = { ...disk, freeBytes: disk.freeBytes + copy.diskBytes, inodesFree: disk.inodesFree + copy.inodes }
    return [{ ...copy, reason: isOld ? 'evicted more than a day ago' : 'its room is needed' }]
  })
}
