import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats } from 'node:fs'
import { atEndNow } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'

/**
 * Reads a small file of the cache. Neither follows a link at its end nor waits for a pipe: in a folder that others can
 * write to, it could be either. Throws CACHE_ROOT_INVALID if it is not a regular file or is longer than `maxBytes`, and
 * the system's errors.
 */
export function readRegularFile(path: string, { maxBytes }: { readonly maxBytes: number }): string {
  requireRegularFile(path) // before opening: the system's error for a link would not name the cause
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  using _ = atEndNow(() => closeSync(descriptor))
  const stats = fstatSync(descriptor)
  if (!stats.isFile()) throw foreign(path, describeKind(stats))
  if (stats.size > maxBytes) throw foreign(path, `${stats.size} bytes`, ` of at most ${maxBytes} bytes`)
  return readFileSync(descriptor, 'utf8')
}

/**
 * Throws CACHE_ROOT_INVALID if a link, pipe, device or folder is in the place of a file; a missing file is fine. For
 * libraries that open by name, such as SQLite, which follows links and waits for pipes.
 */
export function requireRegularFile(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats !== undefined && !stats.isFile()) throw foreign(path, describeKind(stats))
}

function describeKind(stats: Stats): string {
  if (stats.isSymbolicLink()) return 'a symbolic link'
  if (stats.isFIFO()) return 'a pipe'
  if (stats.isSocket()) return 'a socket'
  return stats.isDirectory() ? 'a folder' : 'a device'
}

function foreign(path: string, found: string, limit = ''): DscError {
  return new DscError('CACHE_ROOT_INVALID', `${path}: expected a regular file${limit}, found ${found}`, {
    hint: `find out who put it there (ls -l ${path}), then move it away`,
  })
}
