import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats } from 'node:fs'
import { DscError } from '../failure/dsc-error.js'

/**
 * Reads a small file of the cache. Neither a link at its end is followed nor a pipe waited for: where others may write
 * to the folder, either could stand there. Throws CACHE_ROOT_INVALID where something else stands or the file is longer
 * than `maxBytes`, and what the system says.
 */
export function readRegularFile(path: string, { maxBytes }: { readonly maxBytes: number }): string {
  requireRegularFile(path) // before it is opened: the system's error for a link would name no cause
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const stats = fstatSync(descriptor)
    if (!stats.isFile()) throw foreign(path, describeKind(stats))
    if (stats.size > maxBytes) throw foreign(path, `${stats.size} bytes`, ` of at most ${maxBytes} bytes`)
    return readFileSync(descriptor, 'utf8')
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Throws CACHE_ROOT_INVALID where a link, a pipe, a device or a folder stands in the place of a file; nothing at all is
 * fine. For libraries that open by name, such as SQLite, which follows links and waits for pipes.
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
