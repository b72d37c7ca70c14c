import { chmodSync } from 'node:fs'
import { mkdir, open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DscError } from '../failure/dsc-error.js'
import { formatCount } from '../model/format-count.js'
import { filesDirectory } from './cache-layout.js'
import { manifestPath, openManifest, readSetting } from './manifest-db.js'
import { syncFileSystem } from './sync-file-system.js'
import { walkTree } from './walk-tree.js'

/** Setting of a manifest that says so: the kernel tells a failure to write once, to the flush that saw it, and no more. */
export const MUST_SYNC_EACH = 'must_sync_each'
/** Up to here syncing file by file is quicker than asking the whole file system. */
const SYNC_ONE_BY_ONE_FILES = 64

/**
 * Gives a complete download its final name, all or nothing. Order matters after a power cut: contents and folders
 * reach the disk before the name does. Both directories must be on one file system. Files are read-only from
 * here on; folders stay writable, because moving a read-only folder to the trash would be refused.
 */
export async function publishCopy(options: {
  readonly copyDirectory: string
  readonly finalDirectory: string
}): Promise<void> {
  const { copyDirectory, finalDirectory } = options
  const { mustSyncEach } = finishManifest(copyDirectory)
  await syncTree(copyDirectory, mustSyncEach)
  await mkdir(dirname(finalDirectory), { recursive: true })
  await rename(copyDirectory, finalDirectory)
  await syncPath(dirname(finalDirectory))
  await syncPath(dirname(dirname(finalDirectory))) // the folder may be new itself
}

/** Folds the journal into the manifest, so that a published copy is one file that nobody writes. */
function finishManifest(copyDirectory: string): { readonly mustSyncEach: boolean } {
  const db = openManifest(copyDirectory)
  let mustSyncEach = false
  try {
    mustSyncEach = readSetting(db, MUST_SYNC_EACH) !== undefined
    const missing = db.prepare<[], { n: number }>('SELECT count(*) AS n FROM object WHERE state = 0').get()!.n
    if (missing > 0)
      throw new DscError(
        'COPY_DAMAGED',
        `${copyDirectory}: ${formatCount(missing, 'object is', 'objects are')} not fetched`,
        {
          hint: 'run the same command again: finished files are kept',
        },
      )
    db.pragma('journal_mode = DELETE')
  } finally {
    db.close()
  }
  chmodSync(manifestPath(copyDirectory), 0o444)
  return { mustSyncEach }
}

async function syncTree(copyDirectory: string, mustSyncEach: boolean): Promise<void> {
  const paths: string[] = []
  for await (const entry of walkTree(copyDirectory)) {
    if (entry.kind === 'other') continue
    paths.push(entry.path)
    if (paths.length > SYNC_ONE_BY_ONE_FILES) break
  }
  if (!mustSyncEach && paths.length > SYNC_ONE_BY_ONE_FILES && (await syncFileSystem(copyDirectory))) return
  for await (const entry of walkTree(copyDirectory)) if (entry.kind !== 'other') await syncPath(entry.path)
  await syncPath(filesDirectory(copyDirectory))
  await syncPath(copyDirectory)
}

/** Flushes a file's or folder's contents to the disk. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
