import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { resolveHeldPath } from './held-folder.js'

/**
 * Writes everything of the file system that holds `directory` to its disk: syncfs(2) by way of coreutils, as Node has
 * no binding. False where there is no such command or it failed: then every file is to be synced on its own, which
 * also tells what went wrong.
 */
export async function syncFileSystem(directory: string): Promise<boolean> {
  try {
    await promisify(execFile)('sync', ['-f', join(resolveHeldPath(directory), '.')])
    return true
  } catch {
    return false
  }
}
