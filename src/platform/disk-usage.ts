import { statfs } from 'node:fs/promises'
import type { DiskUsage } from '../model/policy.js'

/** Asks the kernel how full the file system that holds `path` is. `path` must exist. */
export async function readDiskUsage(path: string): Promise<DiskUsage> {
  const { bsize, blocks, bavail, files, ffree } = await statfs(path)
  return { capacityBytes: blocks * bsize, freeBytes: bavail * bsize, inodesTotal: files, inodesFree: ffree }
}
