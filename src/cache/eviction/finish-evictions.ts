import { isDscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import { placeOf, removeAdoptedFolder } from '../adopted-folder.js'
import type { Cache } from '../cache.js'
import { copyDirectory } from '../cache-layout.js'
import { discardHeld, namesBelow } from '../held-cache.js'

/**
 * Deletes the files of copies that the record calls `evicting`, then their rows: rename into the trash, so that
 * nobody finds half a copy, unlink, forget. Several processes may finish one eviction at once: whoever comes
 * later helps unlinking, so that the row goes only after the last byte. Where a copy lies is computed, never taken
 * from the record. What is not as it should be on the way to one copy is left as it is, and keeps none of the others.
 */
export async function finishEvictions(cache: Cache, copies: readonly Copy[]): Promise<void> {
  let refusal: unknown
  for (const copy of copies) {
    try {
      await discardHeld(cache.root, ['staging', copy.copyId], copy.copyId)
      // Its stager may have been killed between the rename and the record.
      const published = publishedDirectoryOf(cache, copy)
      if (published !== undefined) {
        await discardHeld(cache.root, namesBelow(cache.root, published), `${copy.copyId}-published`)
      }
      const { version } = copy
      if (version !== null && copy.origin === 'local' && !copy.path.startsWith(`${cache.root}/`)) {
        await removeAdoptedFolder(placeOf(cache, { ...copy, version }), copy.copyId)
      }
      await cache.record.finishEviction(copy.copyId, cache.nowMs())
    } catch (error) {
      if (!isDscError(error, 'CACHE_ROOT_INVALID')) throw error
      refusal ??= error
    }
  }
  if (refusal !== undefined) throw refusal
}

/** Where the copy is, or would be, published; undefined before its version is known. */
export function publishedDirectoryOf(
  cache: Cache,
  copy: Pick<Copy, 'dataset' | 'version' | 'copyId'>,
): string | undefined {
  const { dataset, version, copyId } = copy
  return version === null ? undefined : copyDirectory(cache.root, { dataset, version, copyId })
}

/** Removes a directory of this cache by way of its trash. Nothing happens if it is gone already. */
export async function discardDirectory(cache: Cache, directory: string): Promise<void> {
  await discardHeld(cache.root, namesBelow(cache.root, directory))
}
