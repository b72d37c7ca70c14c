import { chmod, rm } from 'node:fs/promises'
import { describeRefusal, isRefused } from './disk-failure.js'
import { walkTree } from './walk-tree.js'

/**
 * Removes a directory and all below it, also where folders were made read-only. Nothing there is no error. What
 * another user made so that this one may not touch it is CACHE_ROOT_INVALID.
 */
export async function removeDirectory(path: string): Promise<void> {
  const remove = () => rm(path, { recursive: true, force: true, maxRetries: 3 })
  try {
    await remove().catch(async (error: unknown) => {
      if (!isRefused(error)) throw error
      await chmod(path, 0o700)
      for await (const entry of walkTree(path)) if (entry.kind === 'directory') await chmod(entry.path, 0o700)
      await remove()
    })
  } catch (error) {
    throw describeRefusal(error, path)
  }
}
