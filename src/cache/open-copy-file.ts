import { constants, readlinkSync, realpathSync } from 'node:fs'
import { type FileHandle, open, realpath } from 'node:fs/promises'
import { DscError } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import { isMarked, placeOf } from './adopted-folder.js'

/** Mode bit of a file that everybody may read. */
const OTHERS_READ = 0o004

/**
 * Opens a file of a copy, to be sent to another node or a client. Others of the cache's group may have put a link in
 * the place of any folder, or a foreign path into the record, so it is looked at what was opened: it must lie below
 * the root. Files of an adopted folder may lie there as well, if its owner had it adopted or everybody may read them.
 * Rejects with CACHE_ROOT_INVALID for anything else, and with what opening rejects with.
 */
export async function openCopyFile(
  root: string,
  copy: Pick<Copy, 'dataset' | 'version' | 'copyId' | 'path' | 'origin'>,
  path: string,
): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK) // of a pipe nobody waits for a writer
  try {
    const [stats, opened] = [await file.stat(), await findOpened(file, path)]
    const isOwn = stats.isFile() && opened.startsWith(`${realpathSync(root)}/`)
    if (isOwn || (stats.isFile() && mayBeSent(root, copy, { opened, mode: stats.mode }))) return file
    throw new DscError('CACHE_ROOT_INVALID', `${path} leads to ${opened}, which is not of this cache`, {
      hint: 'dsc verify; find out who put a link there',
    })
  } catch (error) {
    await file.close()
    throw error
  }
}

function mayBeSent(
  root: string,
  copy: Parameters<typeof openCopyFile>[1],
  { opened, mode }: { readonly opened: string; readonly mode: number },
): boolean {
  const { origin, version, path } = copy
  if (origin !== 'local' || version === null || !opened.startsWith(`${path}/`)) return false
  return (mode & OTHERS_READ) !== 0 || isMarked(placeOf({ root }, { ...copy, version }))
}

/** The path of what was opened, links resolved. Without /proc, of what would be opened now. */
async function findOpened(file: FileHandle, path: string): Promise<string> {
  try {
    return readlinkSync(`/proc/self/fd/${file.fd}`)
  } catch {
    return realpath(path)
  }
}
