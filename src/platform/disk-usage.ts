import { statfs } from 'node:fs/promises'

/** How full the file system under a path is. */
export interface DiskUsage {
  /** Size of the whole file system, bytes. */
  readonly capacityBytes: number
  /** Bytes that this user may still write; blocks reserved for root are not among them. */
  readonly freeBytes: number
  /** Files that the file system can hold, or 0 = unknown (btrfs and most network file systems do not say). */
  readonly inodesTotal: number
  /** Files that can still be made; means nothing when `inodesTotal` is 0. */
  readonly inodesFree: number
}

/** Asks the kernel how full the file system that holds `path` is. `path` must exist. */
export async function readDiskUsage(path: string): Promise<DiskUsage> {
  const { bsize, blocks, bavail, files, ffree } = await statfs(path)
  return {
    capacityBytes: blocks * bsize,
    freeBytes: bavail * bsize,
    inodesTotal: files,
    inodesFree: ffree,
  }
}
