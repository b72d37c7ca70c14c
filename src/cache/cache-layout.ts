import { join } from 'node:path'
import type { Copy } from '../model/copy.js'

/**
 * Layout of a cache root. Layout version 1, as `dsc-cache.json` in the root says.
 *
 *   copies/<dataset>/<version>-<copyId>/{manifest.db,files/}   published, read-only; for a hub repository also hub/,
 *                                                              the cache of the hub's own clients
 *   staging/<copyId>/{manifest.db,files/}                      being downloaded
 *   staging/repair-<copyId>-<random>/                          files of a ready copy, fetched again (for an adopted
 *                                                              folder inside it: .dsc-repair-<copyId>-<random>/)
 *   samples/<digest>.samples                                   lists of samples for feeds, rebuilt when missing
 *   trash/<random>/                                            renamed away, being deleted
 *   trash/kept-<evicted at>-<bytes>-<inodes>-<copyId>/         evicted by a user, who can take it back for a day
 *
 * All are on one file system: publishing and evicting are renames. No two copies ever share a directory, even one after
 * the other: a process that finishes an old eviction late cannot hit a newer copy of the same version.
 */
export const LAYOUT_VERSION = 1

/**
 * Characters of the version, and of the (random) end of the copy id, in a folder's name: enough to tell a dataset's
 * copies apart.
 */
const VERSION_DIGITS = 16
const COPY_ID_DIGITS = 8

/** The file that makes a folder a cache root and identifies it. */
export function identityFile(root: string): string {
  return join(root, 'dsc-cache.json')
}

/** Folder of the published copies of all datasets. */
export function copiesDirectory(root: string): string {
  return join(root, 'copies')
}

/** Folder in which a copy is published. */
export function copyDirectory(
  root: string,
  copy: { readonly dataset: string; readonly version: string; readonly copyId: string },
): string {
  const name = `${copy.version.slice(0, VERSION_DIGITS)}-${copy.copyId.slice(-COPY_ID_DIGITS)}`
  return `${copiesDirectory(root)}/${copy.dataset}/${name}`
}

/** Whether a copy of this dataset and version could be published in this directory. */
export function isCopyDirectoryOf(
  root: string,
  { dataset, version }: { readonly dataset: string; readonly version: string },
  directory: string,
): boolean {
  const prefix = join(copiesDirectory(root), dataset, version.slice(0, VERSION_DIGITS))
  return directory.startsWith(prefix) && !directory.slice(prefix.length).includes('/')
}

/**
 * Prefix of the name of a folder for files of a ready copy that are fetched again. The folder is on the file system of
 * the copy's files, so that they can be renamed into place: an adopted folder may be on another than the cache.
 */
export function repairPrefix(root: string, copy: Pick<Copy, 'copyId' | 'origin' | 'path'>): string {
  return copy.origin === 'local'
    ? join(copy.path, `.dsc-repair-${copy.copyId}-`)
    : join(stagingDirectory(root), `repair-${copy.copyId}-`)
}

/** Folder in which copies are filled before they are published. */
export function stagingDirectory(root: string): string {
  return join(root, 'staging')
}

/** Folder in which this copy is filled. */
export function stagingDirectoryOf(root: string, copyId: string): string {
  return join(stagingDirectory(root), copyId)
}

/** Folder in the root where an agent keeps the lists of samples of copies, so that a feed need not list them again. */
export const SAMPLES_FOLDER = 'samples'

/** First stop of anything to be deleted: one rename gets it out of the way. */
export function trashDirectory(root: string): string {
  return join(root, 'trash')
}

/** The dataset's own tree inside a copy's directory, which jobs read. */
export function filesDirectory(copyDirectory: string): string {
  return join(copyDirectory, 'files')
}

/** The cache of the hub's own clients inside the directory of a hub repository's copy. */
export function hubDirectory(copyDirectory: string): string {
  return join(copyDirectory, 'hub')
}
