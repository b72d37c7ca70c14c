import type { CachePolicy, DiskUsage } from '../../model/policy.js'
import type { CopySum } from '../../policy/copy-sums.js'
import { mayGo, measureLoad } from '../../policy/plan-eviction.js'
import { quotaBytes } from '../../policy/quota.js'
import { measureShares, type ShareStanding } from '../../policy/shares.js'

/** Use of one limit. */
interface LimitUsage {
  /** Datasets, bytes or inodes. */
  readonly used: number
  /** The policy's limit; null = no limit. */
  readonly allowed: number | null
}

/** How full a node is, by the record and the last measurement of its disk. */
export interface NodeUsage {
  readonly datasets: LimitUsage
  /** Bytes charged to copies, against `maxPercent` of the capacity. */
  readonly diskBytes: LimitUsage
  /** Bytes free on the disk when the node last looked, and the bytes that the policy keeps free. */
  readonly free: { readonly freeBytes: number; readonly minFreeBytes: number | null }
  /** Inodes used and in total on the file system; null if it does not say. */
  readonly inodes: LimitUsage | null
  /** Bytes that admitted copies may still write. */
  readonly outstandingBytes: number
  /** The whole disk by use: by copies, by anything else, free. */
  readonly onDisk: { readonly oursBytes: number; readonly othersBytes: number; readonly freeBytes: number }
  /** Bytes of copies that could be evicted at present: idle, unlocked, with a remote source. */
  readonly evictableBytes: number
  readonly evictableCopies: number
  /** State of the node's shares; empty if its policy has none. */
  readonly shares: readonly ShareStanding[]
}

/** Measures the copies of one node against its policy. */
export function measureNodeUsage(policy: CachePolicy, disk: DiskUsage, sums: readonly CopySum[]): NodeUsage {
  const load = measureLoad(sums)
  const quota = quotaBytes(policy, disk)
  const evictable = sums.filter(mayGo)
  return {
    datasets: { used: load.datasets, allowed: policy.maxDatasets ?? null },
    diskBytes: { used: load.bytes, allowed: Number.isFinite(quota) ? quota : null },
    free: { freeBytes: disk.freeBytes, minFreeBytes: policy.minFreeBytes ?? null },
    inodes:
      disk.inodesTotal > 0 ? { used: disk.inodesTotal - disk.inodesFree, allowed: disk.inodesTotal } : null,
    outstandingBytes: load.outstandingBytes,
    onDisk: shareDisk(disk, load.bytes - load.outstandingBytes),
    evictableBytes: evictable.reduce((total, { chargedBytes }) => total + chargedBytes, 0),
    evictableCopies: evictable.reduce((total, { copies }) => total + copies, 0),
    shares: measureShares(policy, disk, { sums, load }),
  }
}

/** `writtenBytes`: charged and on disk by the record, which may lag behind the disk. */
function shareDisk({ capacityBytes, freeBytes }: DiskUsage, writtenBytes: number): NodeUsage['onDisk'] {
  const takenBytes = Math.max(0, capacityBytes - freeBytes)
  const oursBytes = Math.min(takenBytes, Math.max(0, writtenBytes))
  return { oursBytes, othersBytes: takenBytes - oursBytes, freeBytes }
}
