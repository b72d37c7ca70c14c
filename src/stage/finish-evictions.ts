import { randomBytes } from 'node:crypto'
import { mkdir, rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Copy } from '../model/copy.js'
import type { Cache } from './cache.js'
import { trashDirectory } from './cache-layout.js'
import { removeDirectory } from './remove-directory.js'

/**
 * Deletes the files of copies that the record calls `evicting`, then their rows: rename into the trash, so that
 * nobody finds half a copy, unlink, forget. Any number of processes may finish the same eviction at once.
 */
export async function finishEvictions(cache: Cache, copies: readonly Copy[]): Promise<void> {
  for (const copy of copies) {
    await discardDirectory(cache, copy.directory)
    await cache.record.finishEviction(copy.copyId, cache.nowMs())
  }
}

/** Removes a directory of this cache by way of its trash. Nothing happens if it is gone already. */
export async function discardDirectory(cache: Cache, directory: string): Promise<void> {
  const trash = trashDirectory(cache.root)
  await mkdir(trash, { recursive: true })
  const trashed = join(trash, `${basename(directory)}-${randomBytes(6).toString('hex')}`)
  try {
    await rename(directory, trashed)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return
  }
  await removeDirectory(trashed)
}
