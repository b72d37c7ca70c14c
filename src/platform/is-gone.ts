import { accessSync, existsSync } from 'node:fs'

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
