import { randomBytes } from 'node:crypto'
import { DscError } from '../failure/dsc-error.js'
import { HeldFolder } from '../platform/held-folder.js'
import { isGone } from '../platform/is-gone.js'

/**
 * Opens a folder below the cache root, name by name and through no link; undefined where it is missing. The root
 * itself is where its operator says; whatever lies below it, others of its group may have put there.
 */
export function findHeld(root: string, names: readonly string[]): HeldFolder | undefined {
  return walk(root, names, (folder, name) => folder.findFolder(name))
}

/** As `findHeld`; makes what is missing, but not the root. */
export function makeHeld(root: string, names: readonly string[]): HeldFolder {
  const held = walk(root, names, (folder, name) => folder.makeFolder(name))
  if (held === undefined) {
    throw new DscError('CACHE_ROOT_INVALID', `${root} is gone`, {
      hint: 'mount its disk, or run the command again to make it anew',
    })
  }
  return held
}

/** The names that lead from the root to `path`. CACHE_ROOT_INVALID where it does not lie below the root. */
export function namesBelow(root: string, path: string): readonly string[] {
  const prefix = root === '/' ? root : `${root}/`
  if (path.startsWith(prefix)) return path.slice(prefix.length).split('/')
  throw new DscError('CACHE_ROOT_INVALID', `${path} is not below ${root}; it is left as it is`, {
    hint: 'dsc status',
  })
}

/** Removes an entry below the root by way of the trash, so that nobody finds half of it. Nothing there is no error. */
export async function discardHeld(
  root: string,
  names: readonly string[],
  trashName = randomBytes(8).toString('hex'),
): Promise<void> {
  if (isGone(root)) return
  const trash = makeHeld(root, ['trash'])
  try {
    const moved = moveToTrash(root, names, { trash, trashName })
    if (moved === undefined) await removeInPlace(root, names)
    await trash.remove(trashName)
    if (moved !== undefined && moved !== trashName) await trash.remove(moved)
  } finally {
    trash.close()
  }
}

/** A folder of a lower layer of overlayfs, as a container's image brings it, cannot be renamed. */
async function removeInPlace(root: string, names: readonly string[]): Promise<void> {
  const parent = findHeld(root, names.slice(0, -1))
  try {
    await parent?.remove(names.at(-1)!)
  } finally {
    parent?.close()
  }
}

/** The name that it got; undefined: it cannot be moved. Whoever is killed here and begins anew may find his own trash under it: then it is another. */
function moveToTrash(
  root: string,
  names: readonly string[],
  to: { readonly trash: HeldFolder; readonly trashName: string },
): string | undefined {
  const parent = findHeld(root, names.slice(0, -1))
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
  } finally {
    parent.close()
  }
}

function walk(
  root: string,
  names: readonly string[],
  step: (folder: HeldFolder, name: string) => HeldFolder | undefined,
): HeldFolder | undefined {
  let held = HeldFolder.find(root)
  for (const name of names) {
    const folder = held
    if (folder === undefined) return undefined
    try {
      held = step(folder, name)
    } finally {
      folder.close()
    }
  }
  return held
}
