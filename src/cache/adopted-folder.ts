import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, writeSync } from 'node:fs'
import { atEndNow } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import { unlessCode } from '../failure/unless-code.js'
import { isRefused } from '../platform/disk-failure.js'
import { HeldFolder } from '../platform/held-folder.js'
import type { Cache } from './cache.js'
import { copyDirectory } from './cache-layout.js'

/**
 * An adopted folder lies outside the cache root, and any member of its group may have written the record that says
 * where. So adopting leaves a file beside the folder, `.<name>.dsc-adopted`, which only a user who may delete the
 * folder anyway can create. Without it dsc neither deletes nor repairs anything there.
 */
interface AdoptedPlace {
  /** Path of the folder. */
  readonly path: string
  /** Content of the file beside it: the dataset, and the name of the copy's directory in the cache. */
  readonly label: string
}

/** Where the record says an adopted folder lies. Ask `isMarked` before changing anything there. */
export function placeOf(
  cache: Pick<Cache, 'root'>,
  copy: { dataset: string; version: string; copyId: string; path: string },
): AdoptedPlace {
  return { path: copy.path, label: copyDirectory(cache.root, copy).split('/').slice(-2).join('/') }
}

/**
 * Writes the file beside the folder. False: this user may not, or the folder is another's; dsc then never deletes it.
 */
export function markAdopted(place: AdoptedPlace): boolean {
  return withParent(place, (parent, name) => {
    const path = parent.pathOf(markerOf(name))
    try {
      if (readMarker(path) !== undefined) parent.unlink(markerOf(name))
      const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
      const descriptor = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644)
      writeSync(descriptor, place.label)
      closeSync(descriptor)
    } catch (error) {
      if (isRefused(error)) return false
      throw error
    }
    return isMarkedIn({ parent, name }, place)
  })
}

/** Whether a user who may delete the folder adopted it as this copy. */
export function isMarked(place: AdoptedPlace): boolean {
  return withParent(place, (parent, name) => isMarkedIn({ parent, name }, place))
}

/** Removes the file beside the folder if it belongs to this copy. */
export function unmarkAdopted(place: AdoptedPlace): void {
  withParent(place, (parent, name) => {
    const marker = markerOf(name)
    if (readMarker(parent.pathOf(marker))?.label === place.label) parent.unlink(marker)
  })
}

/** Removes an adopted folder. Its trash lies beside it, as it may be on another file system than the cache. */
export async function removeAdoptedFolder(place: AdoptedPlace, trashName: string): Promise<void> {
  const held = findParent(place.path)
  if (held === undefined) return
  using parent = held.parent
  const { name } = held
  const trashed = `${name}.dsc-trash-${trashName}`
  const left = [name, trashed].filter((entry) => parent.has(entry))
  for (const entry of left) {
    if (!isMarkedIn(held, place, entry)) throw notMarked(place)
    parent.refuseLink(entry)
  }
  try {
    parent.move(name, parent, trashed)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await parent.remove(name) // from a lower layer of overlayfs
  }
  await parent.remove(trashed)
  if (readMarker(parent.pathOf(markerOf(name)))?.label === place.label) parent.unlink(markerOf(name))
}

/** Opens the folder without following links; throws CACHE_ROOT_INVALID unless it is marked. */
export function holdAdopted(place: AdoptedPlace): HeldFolder {
  const folder = withParent(place, (parent, name) => {
    if (!isMarkedIn({ parent, name }, place)) throw notMarked(place)
    return parent.findFolder(name)
  })
  if (folder === undefined || folder === false) throw notMarked(place)
  return folder
}

function markerOf(name: string): string {
  return `.${name}.dsc-adopted`
}

/** The file counts only if the folder's owner or root wrote it: other users may be able to write to the parent. */
function isMarkedIn(
  { parent, name }: { readonly parent: HeldFolder; readonly name: string },
  place: AdoptedPlace,
  folder = name,
): boolean {
  const marker = readMarker(parent.pathOf(markerOf(name)))
  const owner = lstatSync(parent.pathOf(folder), { throwIfNoEntry: false })?.uid
  return marker?.label === place.label && (marker.uid === 0 || marker.uid === owner)
}

function readMarker(path: string): { readonly label: string; readonly uid: number } | undefined {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const descriptor = unlessCode(['ENOENT', 'ELOOP', 'EACCES', 'ENXIO'], () => openSync(path, flags))
  if (descriptor === undefined) return undefined
  using _ = atEndNow(() => closeSync(descriptor))
  const stats = fstatSync(descriptor)
  if (!stats.isFile() || stats.nlink !== 1 || stats.size > 4096) return undefined
  return { label: readFileSync(descriptor, 'utf8'), uid: stats.uid }
}

function withParent<T>(place: AdoptedPlace, act: (parent: HeldFolder, name: string) => T): T | false {
  const held = findParent(place.path)
  if (held === undefined) return false
  using parent = held.parent
  return act(parent, held.name)
}

/** Opens the parent, one name at a time: the path contained no links when the folder was adopted. */
function findParent(path: string): { readonly parent: HeldFolder; readonly name: string } | undefined {
  const names = path.split('/').filter((name) => name !== '')
  const name = names.pop()
  let folder = HeldFolder.find('/')
  if (name === undefined || !path.startsWith('/')) return undefined
  for (const step of names) {
    using parent: HeldFolder | undefined = folder
    if (parent === undefined) return undefined
    folder = parent.findFolder(step)
  }
  return folder && { parent: folder, name }
}

function notMarked({ path }: AdoptedPlace): DscError {
  return new DscError(
    'CACHE_ROOT_INVALID',
    `${path} is outside of the cache and not marked as adopted by its owner; it is left as it is`,
    { hint: `dsc adopt ${path} as its owner or root, if dsc may delete it` },
  )
}
