import { isDscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import { placeOf, removeAdoptedFolder } from '../adopted-folder.js'
import type { Cache } from '../cache.js'
import { copyDirectory } from '../cache-layout.js'
import { discardHeld, namesBelow } from '../held-cache.js'
import { keepCopy } from '../kept-copies.js'

/**
 * Deletes the files of copies that the record calls `evicting`, then their rows. It renames each into the trash, so
 * that no process finds half a copy, then deletes it, then forgets it. Several processes may finish one eviction at
 * once: later ones help with the deletion, so the row goes only after the last byte. The copy's location is computed,
 * never read from the record. If one copy's path is not as it should be, that copy is left alone and the others are
 * still deleted. With `keepsFiles`, ready copies (as their states were when they were planned) stay in the trash for an
 * undo. Resolves with how many do.
 */
export async function finishEvictions(
  cache: Cache,
  copies: readonly Copy[],
  options: { readonly keepsFiles?: boolean } = {},
): Promise<number> {
  let refusal: unknown
  let kept = 0
  for (const copy of copies) {
    try {
      await discardHeld(cache.root, ['staging', copy.copyId], copy.copyId)
      // The stager may have been killed after the rename and before it updated the record.
      const published = publishedDirectoryOf(cache, copy)
      if (published !== undefined && options.keepsFiles && isKeepable(cache, copy)) {
        const { copyId, chargedBytes: diskBytes, chargedInodes: inodes } = copy
        const space = { copyId, diskBytes, inodes, evictedAtMs: cache.nowMs() }
        if (keepCopy(cache.root, published, space)) kept += 1
      }
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
  return kept
}

/** Whether all of the copy is one folder of this cache. */
function isKeepable({ root }: Cache, { state, path }: Copy): boolean {
  return state === 'ready' && path.startsWith(`${root}/`)
}

/** Where the copy is or would be published; undefined until its version is known. */
export function publishedDirectoryOf(
  cache: Cache,
  copy: Pick<Copy, 'dataset' | 'version' | 'copyId'>,
): string | undefined {
  const { dataset, version, copyId } = copy
  return version === null ? undefined : copyDirectory(cache.root, { dataset, version, copyId })
}

/** Removes a directory of this cache by way of its trash. Does nothing if it is already gone. */
export async function discardDirectory(cache: Cache, directory: string): Promise<void> {
  await discardHeld(cache.root, namesBelow(cache.root, directory))
}
