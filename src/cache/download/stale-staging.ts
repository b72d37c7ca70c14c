import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { Manifest } from '../../manifest/manifest.js'
import { hasUsableManifest } from '../../manifest/manifest-file.js'
import { manifestPath } from '../../manifest/manifest-path.js'
import { onHeldPath } from '../../platform/held-path.js'
import { removeDirectory } from '../../platform/remove-directory.js'
import { filesDirectory } from '../cache-layout.js'
import { recheckAfterReboot } from './recheck.js'

/** Where a staging keeps files of a listing that no longer fits: a half-done copy of its own. */
export function staleDirectory(copyDirectory: string): string {
  return join(copyDirectory, 'stale')
}

/**
 * Clears a staging for a new listing. Files of a complete listing move aside, since most are wanted again after one
 * object in a million changed. An incomplete listing's files are removed.
 */
export async function setAside(copyDirectory: string): Promise<void> {
  const files = filesDirectory(copyDirectory)
  if (isListed(copyDirectory)) {
    const stale = staleDirectory(copyDirectory)
    await removeDirectory(stale)
    mkdirSync(stale)
    onHeldPath(filesDirectory(stale), (aside) => renameSync(files, aside))
    // Last: without the manifest the folder means nothing.
    onHeldPath(manifestPath(stale), (aside) => renameSync(manifestPath(copyDirectory), aside))
  } else await removeDirectory(files)
}

/** The directory set aside, with its files rechecked after a reboot, or undefined. */
export async function openStale(
  copyDirectory: string,
  options: { readonly signal: AbortSignal; readonly bootId?: string | undefined },
): Promise<string | undefined> {
  const stale = staleDirectory(copyDirectory)
  if (!existsSync(manifestPath(stale)) || !hasUsableManifest(stale)) return undefined
  using manifest = Manifest.open(stale)
  await recheckAfterReboot(manifest, stale, options)
  return stale
}

/** Whether a staging holds fetched and verified bytes, for this listing or the one before it. */
export function holdsFetched(copyDirectory: string): boolean {
  return [copyDirectory, staleDirectory(copyDirectory)].some((directory) => {
    using manifest = Manifest.findPublished(directory)
    if (manifest === undefined) return false
    return manifest.count('begun').files > 0
  })
}

/** Opening and closing also folds the journal in, so that the manifest can be moved. */
function isListed(copyDirectory: string): boolean {
  if (!hasUsableManifest(copyDirectory)) return false
  using manifest = Manifest.open(copyDirectory)
  return manifest.readSetting('listing') !== undefined
}
