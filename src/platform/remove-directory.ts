import { basename, dirname } from 'node:path'
import { unlessCode } from '../failure/unless-code.js'
import { HeldFolder } from './held-folder.js'
import { onHeldPath } from './held-path.js'

/**
 * Removes a directory and everything below it, even read-only folders; removes links, but not their targets. A missing
 * directory is no error. Throws CACHE_ROOT_INVALID for entries of another user that this one may not touch.
 */
export async function removeDirectory(path: string): Promise<void> {
  using parent = unlessCode(['ENOENT'], () => onHeldPath(path, (at) => HeldFolder.find(dirname(at))))
  await parent?.remove(basename(path))
}
