import { join } from 'node:path'

/**
 * Where things lie under a cache root. Layout version 1; `dsc-cache.json` in the root says so.
 *
 *   copies/<dataset>/<version>/{manifest.db,files/}   published, read-only
 *   staging/<copyId>/{manifest.db,files/}             being downloaded
 *   trash/<copyId>-<random>/                          renamed away, being unlinked
 *
 * All three are on one file system: publishing and evicting are renames.
 */
export const LAYOUT_VERSION = 1

/** Hexadecimal digits of a version that name its folder: 64 bits are plenty among the versions of one dataset. */
const VERSION_DIGITS = 16

export function identityFile(root: string): string {
  return join(root, 'dsc-cache.json')
}

export function copiesDirectory(root: string): string {
  return join(root, 'copies')
}

export function copyDirectory(root: string, dataset: string, version: string): string {
  return join(copiesDirectory(root), dataset, version.slice(0, VERSION_DIGITS))
}

export function stagingDirectory(root: string): string {
  return join(root, 'staging')
}

export function stagingDirectoryOf(root: string, copyId: string): string {
  return join(stagingDirectory(root), copyId)
}

export function trashDirectory(root: string): string {
  return join(root, 'trash')
}

/** The dataset's own tree inside a copy's directory: what a job reads. */
export function filesDirectory(copyDirectory: string): string {
  return join(copyDirectory, 'files')
}
