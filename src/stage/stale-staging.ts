import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { filesDirectory } from './cache-layout.js'
import { hasUsableManifest, manifestPath, openManifest, readSetting } from './manifest-db.js'
import { recheckAfterReboot } from './recheck.js'
import { removeDirectory } from './remove-directory.js'

/** Where a staging keeps what it downloaded for a listing that no longer fits: a copy of its own, half done. */
export function staleDirectory(copyDirectory: string): string {
  return join(copyDirectory, 'stale')
}

/**
 * Clears a staging for a new listing. Files of a complete listing move aside, since most of them will be wanted
 * again when one object of a million changed; those of a listing that broke off are none.
 */
export async function setAside(copyDirectory: string): Promise<void> {
  const files = filesDirectory(copyDirectory)
  if (isListed(copyDirectory)) {
    const stale = staleDirectory(copyDirectory)
    await removeDirectory(stale)
    mkdirSync(stale)
    renameSync(files, filesDirectory(stale))
    renameSync(manifestPath(copyDirectory), manifestPath(stale)) // last: without it the folder says nothing
  } else await removeDirectory(files)
}

/** The directory that was set aside, its files checked after a reboot; undefined when there is none. */
export async function openStale(
  copyDirectory: string,
  options: { readonly signal: AbortSignal; readonly bootId?: string | undefined },
): Promise<string | undefined> {
  const stale = staleDirectory(copyDirectory)
  if (!existsSync(manifestPath(stale)) || !hasUsableManifest(stale)) return undefined
  const db = openManifest(stale)
  try {
    await recheckAfterReboot(db, stale, options)
  } finally {
    db.close()
  }
  return stale
}

/** Opening and closing also folds the journal in, so that the manifest may be moved. */
function isListed(copyDirectory: string): boolean {
  if (!hasUsableManifest(copyDirectory)) return false
  const db = openManifest(copyDirectory)
  try {
    return readSetting(db, 'listing') !== undefined
  } finally {
    db.close()
  }
}
