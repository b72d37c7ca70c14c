import { realpathSync } from 'node:fs'
import { join, relative } from 'node:path'
import { openOrClose } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import { QuickFile } from '../platform/quick-file.js'
import { findOpened, maySend, type SendRule } from '../platform/send-rule.js'
import { isMarked, placeOf } from './adopted-folder.js'

/** The fields of a copy that tell which files belong to it. */
type CopyPlace = Pick<Copy, 'dataset' | 'version' | 'copyId' | 'path' | 'origin'>

/** Link-free paths of cache roots, by configured path: needed at every opening, and they hardly ever change. */
const realRoots = new Map<string, string>()

/**
 * Opens a file of a copy, to send it to another node or a client. Another user of the cache's group may have replaced a
 * folder with a link, or written a foreign path into the record, so the opened file itself is checked: it must lie
 * below the root. Files of an adopted folder may also lie there, if its owner adopted it or everybody may read them.
 * Rejects with CACHE_ROOT_INVALID for any other file, and passes on failures to open it.
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
 * Like `openCopyFile`, but within this event-loop turn. Undefined: it would wait for a disk, or `openCopyFile` would
 * reject the file. Throws failures to open it.
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

/** The rule for samples of this copy, whose paths a client names: nothing of other copies. */
export function sampleRuleOf(root: string, copy: CopyPlace): SendRule {
  const { below, publicBelow } = sendRuleOf(root, copy)
  const [cacheRoot, adopted] = below
  if (publicBelow !== undefined) return { below: [], publicBelow }
  return { below: [adopted ?? join(cacheRoot!, relative(root, copy.path))] }
}

/** The rule for which files may be sent as files of this copy. */
export function sendRuleOf(root: string, copy: CopyPlace): SendRule {
  const { origin, version, path } = copy
  const cacheRoot = realRoots.get(root) ?? realpathSync(root)
  realRoots.set(root, cacheRoot)
  if (origin !== 'local' || version === null) return { below: [cacheRoot] }
  return isMarked(placeOf({ root }, { ...copy, version }))
    ? { below: [cacheRoot, path] }
    : { below: [cacheRoot], publicBelow: path }
}
