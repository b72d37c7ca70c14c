import { execFile } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { mkdir, open, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { DscError } from '../failure/dsc-error.js'
import { filesDirectory } from './cache-layout.js'
import { manifestPath, openManifest } from './manifest-db.js'
import { walkTree } from './walk-tree.js'

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
  finishManifest(copyDirectory)
  await syncTree(copyDirectory)
  await mkdir(dirname(finalDirectory), { recursive: true })
  await rename(copyDirectory, finalDirectory)
  await syncPath(dirname(finalDirectory))
  await syncPath(dirname(dirname(finalDirectory))) // the folder may be new itself
}

/** Folds the journal into the manifest, so that a published copy is one file that nobody writes. */
function finishManifest(copyDirectory: string): void {
  const db = openManifest(copyDirectory)
  try {
    const missing = db
      .prepare<[], { n: number }>('SELECT count(*) AS n FROM object WHERE state <> 1')
      .get()!.n
    if (missing > 0)
      throw new DscError('COPY_DAMAGED', `${copyDirectory}: ${missing} objects are not fetched`, {
        hint: 'run the same command again: finished files are kept',
      })
    db.pragma('journal_mode = DELETE')
  } finally {
    db.close()
  }
  chmodSync(manifestPath(copyDirectory), 0o444)
}

async function syncTree(copyDirectory: string): Promise<void> {
  const paths: string[] = []
  for await (const entry of walkTree(copyDirectory)) {
    if (entry.kind === 'other') continue
    paths.push(entry.path)
    if (paths.length > SYNC_ONE_BY_ONE_FILES) break
  }
  if (paths.length > SYNC_ONE_BY_ONE_FILES && (await syncFileSystem(copyDirectory))) return
  for await (const entry of walkTree(copyDirectory)) if (entry.kind !== 'other') await syncPath(entry.path)
  await syncPath(filesDirectory(copyDirectory))
  await syncPath(copyDirectory)
}

/** syncfs(2) by way of coreutils: Node has no binding. False where there is no such command. */
async function syncFileSystem(directory: string): Promise<boolean> {
  try {
    await promisify(execFile)('sync', ['-f', join(directory, '.')])
    return true
  } catch {
    return false // every file is synced on its own then, and reports what went wrong itself
  }
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
