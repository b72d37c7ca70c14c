import { basename, dirname } from 'node:path'
import { HeldFolder, onHeldPath } from './held-folder.js'

/**
 * Removes a directory and all below it, also where folders were made read-only; links in it go, what they lead to
 * stays. Nothing there is no error. What another user made so that this one may not touch it is CACHE_ROOT_INVALID.
 */
export async function removeDirectory(path: string): Promise<void> {
  let parent: HeldFolder | undefined
  try {
    parent = onHeldPath(path, (at) => HeldFolder.find(dirname(at)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  if (parent === undefined) return
  try {
    await parent.remove(basename(path))
  } finally {
    parent.close()
  }
}
