import { statfsSync } from 'node:fs'
import { DscError } from '../failure/dsc-error.js'

const FULL = new Set(['ENOSPC', 'EDQUOT', 'SQLITE_FULL'])
/** With less than this free, SQLite cannot write and reports an I/O error, bytes. */
const NOTHING_LEFT_BYTES = 64 * 1024

/** Turns "no space left" from the file system, a quota or SQLite into DISK_FULL; returns any other error unchanged. */
export function describeDiskFailure(error: unknown, path: string): unknown {
  const code = (error as { code?: unknown } | null)?.code
  if (typeof code !== 'string') return error
  if (!FULL.has(code) && !(code.startsWith('SQLITE_IOERR') && isFull(path))) return error
  const reason = code === 'EDQUOT' ? 'the disk quota is used up' : 'no space or no inodes left'
  return new DscError('DISK_FULL', `${path}: ${reason} (${code})`, {
    cause: error,
    hint: 'dsc evict --free 10GiB, or free space otherwise; then run the same command again',
  })
}

function isFull(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize < NOTHING_LEFT_BYTES
  } catch {
    return false // the path is gone
  }
}

/** Whether the file system refused because the file or folder is another user's, or read-only. */
export function isRefused(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return code === 'EACCES' || code === 'EPERM' || code === 'EROFS'
}

/** Turns a refused change of the cache into CACHE_ROOT_INVALID; returns any other error unchanged. */
export function describeRefusal(error: unknown, path: string): unknown {
  if (!isRefused(error)) return error
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EROFS')
    return new DscError('CACHE_ROOT_INVALID', `${path}: the file system is read-only (${code})`, {
      cause: error,
      hint: 'mount it writable, or set cache.root to a folder on another disk',
    })
  return new DscError('CACHE_ROOT_INVALID', `${path}: this user may not change what is there (${code})`, {
    cause: error,
    hint: 'ask the service of the node at its door (dsc agent), or set cache.root to a folder of your own',
  })
}
