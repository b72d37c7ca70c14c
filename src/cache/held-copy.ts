import { openOrCloseNow } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import type { Copy } from '../model/copy.js'
import type { HeldFolder } from '../platform/held-folder.js'
import { holdAdopted, placeOf } from './adopted-folder.js'
import type { Cache } from './cache.js'
import { copyDirectory } from './cache-layout.js'
import { findHeld, namesBelow } from './held-cache.js'

/** Opens the directory of a ready copy at its computed place, through no link; the caller closes it. */
export function holdCopyDirectory(cache: Cache, copy: Copy): HeldFolder {
  const path = copyDirectory(cache.root, { ...copy, version: copy.version! })
  const directory = findHeld(cache.root, namesBelow(cache.root, path))
  if (directory === undefined) {
    throw new DscError('COPY_DAMAGED', `${path} is gone`, { hint: 'dsc cleanup' })
  }
  return directory
}

/** Opens a ready copy to change its files; the caller closes both. */
export function holdCopy(cache: Cache, copy: Copy): { directory: HeldFolder; files: HeldFolder } {
  return openOrCloseNow((closers) => {
    const directory = holdCopyDirectory(cache, copy)
    closers.add(() => directory.close())
    return { directory, files: holdFiles(cache, copy, directory) }
  })
}

function holdFiles(cache: Cache, copy: Copy, directory: HeldFolder): HeldFolder {
  if (copy.origin === 'local') return holdAdopted(placeOf(cache, { ...copy, version: copy.version! }))
  const files = directory.findFolder('files')
  if (files === undefined) {
    throw new DscError('COPY_DAMAGED', `${directory.name}/files is gone`, {
      hint: `dsc evict ${copy.dataset}, then prepare it again`,
    })
  }
  return files
}
