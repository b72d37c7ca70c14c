import { lstat } from 'node:fs/promises'
import { walkTree } from './walk-tree.js'

const BLOCK_BYTES = 512 // unit of st_blocks, whatever the file system's own

/** What a copy takes on its disk now, itself included. Files shared with another copy count in both. */
export async function measureCopy(
  copyDirectory: string,
): Promise<{ readonly diskBytes: number; readonly inodes: number }> {
  let blocks = (await lstat(copyDirectory)).blocks
  let inodes = 1
  for await (const { path } of walkTree(copyDirectory)) {
    const stats = await lstat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined // a journal that went away meanwhile
      throw error
    })
    if (!stats) continue
    blocks += stats.blocks
    inodes += 1
  }
  return { diskBytes: blocks * BLOCK_BYTES, inodes }
}
