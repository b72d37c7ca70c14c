import { join } from 'node:path'
import type { Copy } from '../model/copy.js'

/**
 * Where things lie under a cache root. Layout version 1; `dsc-cache.json` in the root says so.
 *
 *   copies/<dataset>/<version>-<copyId>/{manifest.db,files/}   published, read-only; of a repository of a hub, hub/
 *                                                              beside them: the cache of the hub's own clients
 *   staging/<copyId>/{manifest.db,files/}                      being downloaded
 *   staging/repair-<copyId>-<random>/                          files of a ready copy, fetched again (of an adopted
 *                                                              folder in there: .dsc-repair-<copyId>-<random>/)
 *   samples/<digest>.samples                                   lists of samples for feeds, made again when missing
 *   trash/<random>/                                            renamed away, being unlinked
 *
 * All are on one file system: publishing and evicting are renames. No two copies ever share a directory, not even
 * one after the other: whoever finishes an old eviction late cannot hit a newer copy of the same version.
 */
export const LAYOUT_VERSION = 1

/** Characters of version and (random) end of the copy id in a folder's name: plenty among a dataset's copies. */
const VERSION_DIGITS = 16
const COPY_ID_DIGITS = 8

/** The file that makes a folder a cache root, and says which one it is. */
export function identityFile(root: string): string {
  return join(root, 'dsc-cache.json')
}

/** Where the published copies of all datasets are. */
export function copiesDirectory(root: string): string {
  return join(root, 'copies')
}

/** Where a copy is published. */
export function copyDirectory(
  root: string,
  copy: { readonly dataset: string; readonly version: string; readonly copyId: string },
): string {
  const name = `${copy.version.slice(0, VERSION_DIGITS)}-${copy.copyId.slice(-COPY_ID_DIGITS)}`
  return `${copiesDirectory(root)}/${copy.dataset}/${name}`
}

/** Whether a directory is one in which a copy of this dataset and version is published. */
export function isCopyDirectoryOf(
  root: string,
  { dataset, version }: { readonly dataset: string; readonly version: string },
  directory: string,
): boolean {
  const prefix = join(copiesDirectory(root), dataset, version.slice(0, VERSION_DIGITS))
  return directory.startsWith(prefix) && !directory.slice(prefix.length).includes('/')
}

/**
 * Beginning of the name of a folder where files of a ready copy are fetched again. It lies on the file system of the
 * copy's files, so that they can be renamed into place: an adopted folder may be on another than the cache.
 */
export function repairPrefix(root: string, copy: Pick<Copy, 'copyId' | 'origin' | 'path'>): string {
  return copy.origin === 'local'
    ? join(copy.path, `.dsc-repair-${copy.copyId}-`)
    : join(stagingDirectory(root), `repair-${copy.copyId}-`)
}

/** Where copies are filled before they are published. */
export function stagingDirectory(root: string): string {
  return join(root, 'staging')
}

/** Where this copy is filled. */
export function stagingDirectoryOf(root: string, copyId: string): string {
  return join(stagingDirectory(root), copyId)
}

/** Folder of the root in which an agent keeps tables of the samples of copies, so that a feed need not list them again. */
export const SAMPLES_FOLDER = 'samples'

/** Where what is being deleted goes first: in one rename it is no longer in anybody's way. */
export function trashDirectory(root: string): string {
  return join(root, 'trash')
}

/** The dataset's own tree inside a copy's directory: what a job reads. */
export function filesDirectory(copyDirectory: string): string {
  return join(copyDirectory, 'files')
}

/** The cache of the hub's own clients inside the directory of a repository's copy. */
export function hubDirectory(copyDirectory: string): string {
  return join(copyDirectory, 'hub')
}
