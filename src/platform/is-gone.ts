import { accessSync, existsSync, opendirSync } from 'node:fs'

/** Whether nothing exists at `path`. A path that this user may not look at, or that does not answer, is not gone. */
export function isGone(path: string): boolean {
  if (existsSync(path)) return false // unlike accessSync, it makes no error for a missing path
  try {
    accessSync(path)
    return false
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENOENT' || code === 'ENOTDIR'
  }
}

/** Whether a folder has no entries. A folder that this user may not list is not empty. */
export function isEmpty(path: string): boolean {
  try {
    const folder = opendirSync(path, { bufferSize: 1 })
    try {
      return folder.readSync() === null
    } finally {
      folder.closeSync()
    }
  } catch {
    return false
  }
}
