import { randomBytes } from 'node:crypto'
import { mkdir, rename } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { Copy } from '../model/copy.js'
import type { Cache } from './cache.js'
import { copyDirectory, trashDirectory } from './cache-layout.js'
import { describeRefusal } from './disk-failure.js'
import { removeDirectory } from './remove-directory.js'

/**
 * Deletes the files of copies that the record calls `evicting`, then their rows: rename into the trash, so that
 * nobody finds half a copy, unlink, forget. Several processes may finish one eviction at once: whoever comes
 * later helps unlinking, so that the row goes only after the last byte.
 */
export async function finishEvictions(cache: Cache, copies: readonly Copy[]): Promise<void> {
  for (const copy of copies) {
    await discard(cache, copy.directory, copy.copyId)
    // Its stager may have been killed between the rename and the record.
    const published = publishedDirectoryOf(cache, copy)
    if (published !== undefined && published !== copy.directory) {
      await discard(cache, published, `${copy.copyId}-published`)
    }
    if (!isInside(copy.path, copy.directory)) await discardInPlace(copy.path, copy.copyId)
    await cache.record.finishEviction(copy.copyId, cache.nowMs())
  }
}

/** Where the copy is, or would be, published; undefined before its version is known. */
export function publishedDirectoryOf(cache: Cache, copy: Copy): string | undefined {
  const { dataset, version, copyId } = copy
  return version === null ? undefined : copyDirectory(cache.root, { dataset, version, copyId })
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
  try {
    await renameIfThere(directory, trashed)
  } catch (error) {
    // What a repair left in an adopted folder on another file system.
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await removeDirectory(directory)
  }
  await removeDirectory(trashed)
}

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw describeRefusal(error, from)
  }
}
