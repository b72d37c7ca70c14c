import { randomBytes } from 'node:crypto'
import { mkdir, rename } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { Copy } from '../model/copy.js'
import type { Cache } from './cache.js'
import { trashDirectory } from './cache-layout.js'
import { removeDirectory } from './remove-directory.js'

/**
 * Deletes the files of copies that the record calls `evicting`, then their rows: rename into the trash, so that
 * nobody finds half a copy, unlink, forget. Several processes may finish one eviction at once: whoever comes
 * later helps unlinking, so that the row goes only after the last byte.
 */
export async function finishEvictions(cache: Cache, copies: readonly Copy[]): Promise<void> {
  for (const copy of copies) {
    await discard(cache, copy.directory, copy.copyId)
    if (!isInside(copy.path, copy.directory)) await discardInPlace(copy.path, copy.copyId)
    await cache.record.finishEviction(copy.copyId, cache.nowMs())
  }
}

/** Removes a directory of this cache by way of its trash. Nothing happens if it is gone already. */
export async function discardDirectory(cache: Cache, directory: string): Promise<void> {
  await discard(cache, directory, randomBytes(8).toString('hex'))
}

/** An adopted folder lies where it was found, perhaps on another file system: its trash is beside it. */
async function discardInPlace(path: string, copyId: string): Promise<void> {
  const trashed = `${path}.dsc-trash-${copyId}`
  await renameIfThere(path, trashed)
  await removeDirectory(trashed)
}

function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory + sep)
}

async function discard(cache: Cache, directory: string, trashName: string): Promise<void> {
  const trash = trashDirectory(cache.root)
  await mkdir(trash, { recursive: true })
  const trashed = join(trash, trashName)
  await renameIfThere(directory, trashed)
  await removeDirectory(trashed)
}

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
