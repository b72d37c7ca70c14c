import { realpathSync } from 'node:fs'
import { openOrClose } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import { QuickFile } from '../platform/quick-file.js'
import { findOpened, maySend, type SendRule } from '../platform/send-rule.js'
import { isMarked, placeOf } from './adopted-folder.js'

/** What of a copy says which files are its own. */
type CopyPlace = Pick<Copy, 'dataset' | 'version' | 'copyId' | 'path' | 'origin'>

/** Cache roots without links, by what they are called: asked for at every opening, they hardly ever change. */
const realRoots = new Map<string, string>()

/**
 * Opens a file of a copy, to be sent to another node or a client. Others of the cache's group may have put a link in
 * the place of any folder, or a foreign path into the record, so it is looked at what was opened: it must lie below
 * the root. Files of an adopted folder may lie there as well, if its owner had it adopted or everybody may read them.
 * Rejects with CACHE_ROOT_INVALID for anything else, and with what opening rejects with.
 */
export async function openCopyFile(root: string, copy: CopyPlace, path: string): Promise<QuickFile> {
  return openOrClose(async (closers) => {
    const file = await QuickFile.open(path)
    closers.add(() => file.close())
    if (maySend(file.descriptor, path, sendRuleOf(root, copy))) return file
    realRoots.delete(root) // the root itself may have been moved
    if (maySend(file.descriptor, path, sendRuleOf(root, copy))) return file
    throw new DscError(
      'CACHE_ROOT_INVALID',
      `${path} leads to ${findOpened(file.descriptor, path)}, which is not of this cache`,
      { hint: 'dsc verify; find out who put a link there' },
    )
  })
}

/**
 * As `openCopyFile`, within this turn. Undefined: that would wait for a disk, or `openCopyFile` has something to say of
 * the file. Throws what opening throws.
 */
export function openCopyFileHere(root: string, copy: CopyPlace, path: string): QuickFile | undefined {
  const file = QuickFile.openHere(path)
  if (file === undefined) return undefined
  let isOurs = false
  try {
    isOurs = maySend(file.descriptor, path, sendRuleOf(root, copy))
    return isOurs ? file : undefined
  } finally {
    if (!isOurs) file.closeHere()
  }
}

/** Which files may be sent as files of this copy. */
export function sendRuleOf(root: string, copy: CopyPlace): SendRule {
  const { origin, version, path } = copy
  const cacheRoot = realRoots.get(root) ?? realpathSync(root)
  realRoots.set(root, cacheRoot)
  if (origin !== 'local' || version === null) return { below: [cacheRoot] }
  return isMarked(placeOf({ root }, { ...copy, version }))
    ? { below: [cacheRoot, path] }
    : { below: [cacheRoot], publicBelow: path }
}
