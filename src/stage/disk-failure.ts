import { DscError } from '../failure/dsc-error.js'

const FULL = new Set(['ENOSPC', 'EDQUOT', 'SQLITE_FULL'])

/** Turns "no space left" of the file system, a quota or SQLite into DISK_FULL; anything else comes back as it is. */
export function describeDiskFailure(error: unknown, path: string): unknown {
  const code = (error as { code?: unknown } | null)?.code
  if (typeof code !== 'string' || !FULL.has(code)) return error
  const reason = code === 'EDQUOT' ? 'the disk quota is used up' : 'no space or no inodes left'
  return new DscError('DISK_FULL', `${path}: ${reason} (${code})`, {
    cause: error,
    hint: 'dsc evict --free 10GiB, or free space otherwise; then run the same command again',
  })
}
