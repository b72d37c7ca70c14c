import { accessSync, existsSync, opendirSync } from 'node:fs'

/** Whether nothing is at `path`. What this user may not look at, or what does not answer, is not gone. */
export function isGone(path: string): boolean {
  if (existsSync(path)) return false // which makes no error of what is missing
  try {
    accessSync(path)
    return false
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENOENT' || code === 'ENOTDIR'
  }
}

/** Whether a folder has nothing in it. One that this user may not look into is not empty. */
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
