import { randomBytes } from 'node:crypto'
import { DscError } from '../failure/dsc-error.js'
import { HeldFolder } from '../platform/held-folder.js'
import { isGone } from '../platform/is-gone.js'

/**
 * Opens a folder below the cache root, one name at a time and through no link; undefined if it is missing. The operator
 * chose the root itself; other users of the group may have created anything below it.
 */
export function findHeld(root: string, names: readonly string[]): HeldFolder | undefined {
  return walk(root, names, (folder, name) => folder.findFolder(name))
}

/** Like `findHeld`, but creates missing folders below the root. */
export function makeHeld(root: string, names: readonly string[]): HeldFolder {
  const held = walk(root, names, (folder, name) => folder.makeFolder(name))
  if (held === undefined) {
    throw new DscError('CACHE_ROOT_INVALID', `${root} is gone`, {
      hint: 'mount its disk, or run the command again to make it anew',
    })
  }
  return held
}

/** The names that lead from the root to `path`. Throws CACHE_ROOT_INVALID if it is not below the root. */
export function namesBelow(root: string, path: string): readonly string[] {
  const prefix = root === '/' ? root : `${root}/`
  if (path.startsWith(prefix)) return path.slice(prefix.length).split('/')
  throw new DscError('CACHE_ROOT_INVALID', `${path} is not below ${root}; it is left as it is`, {
    hint: 'dsc status',
  })
}

/**
 * Removes an entry below the root by way of the trash, so that no process finds half of it. A missing entry is no
 * error.
 */
export async function discardHeld(
  root: string,
  names: readonly string[],
  trashName = randomBytes(8).toString('hex'),
): Promise<void> {
  if (isGone(root)) return
  using trash = makeHeld(root, ['trash'])
  const moved = moveToTrash(root, names, { trash, trashName })
  if (moved === undefined) await removeInPlace(root, names)
  await trash.remove(trashName)
  if (moved !== undefined && moved !== trashName) await trash.remove(moved)
}

/** A folder in a lower layer of overlayfs, from a container's image, cannot be renamed. */
async function removeInPlace(root: string, names: readonly string[]): Promise<void> {
  using parent = findHeld(root, names.slice(0, -1))
  await parent?.remove(names.at(-1)!)
}

/**
 * Returns the name in the trash; undefined: the entry cannot be moved. A retry after a kill may find its own old trash
 * under the name, and then picks another.
 */
function moveToTrash(
  root: string,
  names: readonly string[],
  to: { readonly trash: HeldFolder; readonly trashName: string },
): string | undefined {
  using parent = findHeld(root, names.slice(0, -1))
  if (parent === undefined) return to.trashName
  const name = names.at(-1)!
  try {
    parent.refuseLink(name)
    parent.move(name, to.trash, to.trashName)
    return to.trashName
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EXDEV') return undefined
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'ENOTDIR') throw error
    const another = `${to.trashName}-${randomBytes(4).toString('hex')}`
    parent.move(name, to.trash, another)
    return another
  }
}

function walk(
  root: string,
  names: readonly string[],
  step: (folder: HeldFolder, name: string) => HeldFolder | undefined,
): HeldFolder | undefined {
  let held = HeldFolder.find(root)
  for (const name of names) {
    using folder = held
    if (folder === undefined) return undefined
    held = step(folder, name)
  }
  return held
}
