import { chmod, rm } from 'node:fs/promises'
import { walkTree } from './walk-tree.js'

/** Removes a directory and all below it, also where folders were made read-only. Nothing there is no error. */
export async function removeDirectory(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3 })
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code !== 'EACCES' && code !== 'EPERM') throw error
    await chmod(path, 0o700)
    for await (const entry of walkTree(path)) if (entry.kind === 'directory') await chmod(entry.path, 0o700)
    await rm(path, { recursive: true, force: true, maxRetries: 3 })
  }
}
