import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { resolveHeldPath } from './held-path.js'

/**
 * Syncs the whole file system that holds `directory` to its disk: syncfs(2) through coreutils, as Node has no binding.
 * False if the command is missing or failed: then sync every file on its own, which also reveals the error.
 */
export async function syncFileSystem(directory: string): Promise<boolean> {
  try {
    await promisify(execFile)('sync', ['-f', join(resolveHeldPath(directory), '.')])
    return true
  } catch {
    return false
  }
}
