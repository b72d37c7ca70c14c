import { lstatSync } from 'node:fs'
import { walkTree } from '../../platform/walk-tree.js'

const BLOCK_BYTES = 512 // unit of st_blocks, on every file system

/** Disk space of a copy now, including its directory. Files shared with another copy count in both. */
export async function measureCopy(
  copyDirectory: string,
): Promise<{ readonly diskBytes: number; readonly inodes: number }> {
  let blocks = lstatSync(copyDirectory).blocks
  let inodes = 1
  for await (const { path } of walkTree(copyDirectory)) {
    // Synchronous: a promise for each of a million files would take longer than the call.
    const stats = lstatSync(path, { throwIfNoEntry: false }) // a journal may disappear during the walk
    if (!stats) continue
    blocks += stats.blocks
    inodes += 1
  }
  return { diskBytes: blocks * BLOCK_BYTES, inodes }
}
