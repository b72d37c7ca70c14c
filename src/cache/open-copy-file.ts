import { constants, realpathSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { DscError } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import { findOpened, maySend, type SendRule } from '../platform/send-rule.js'
import { isMarked, placeOf } from './adopted-folder.js'

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
    if (maySend(file.fd, path, sendRuleOf(root, copy))) return file
    throw new DscError(
      'CACHE_ROOT_INVALID',
      `${path} leads to ${findOpened(file.fd, path)}, which is not of this cache`,
      { hint: 'dsc verify; find out who put a link there' },
    )
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Which files may be sent as files of this copy. */
export function sendRuleOf(root: string, copy: Parameters<typeof openCopyFile>[1]): SendRule {
  const { origin, version, path } = copy
  const cacheRoot = realpathSync(root)
  if (origin !== 'local' || version === null) return { below: [cacheRoot] }
  return isMarked(placeOf({ root }, { ...copy, version }))
    ? { below: [cacheRoot, path] }
    : { below: [cacheRoot], publicBelow: path }
}
