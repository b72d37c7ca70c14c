import { open } from 'node:fs/promises'
import { DscError } from '../../failure/dsc-error.js'
import { Manifest } from '../../manifest/manifest.js'
import { manifestPath } from '../../manifest/manifest-path.js'
import { formatCount } from '../../model/format-count.js'
import type { HeldFolder } from '../../platform/held-folder.js'
import { changeFileMode } from '../../platform/held-path.js'
import { syncFileSystem } from '../../platform/sync-file-system.js'
import { walkTree } from '../../platform/walk-tree.js'
import { filesDirectory } from '../cache-layout.js'
import { findHeld, makeHeld, namesBelow } from '../held-cache.js'
import { markUntouched } from '../untouched-copy.js'
import { layHubCache } from './hub-layout.js'

/** Up to this many files, syncing each is quicker than syncing the whole file system. */
const SYNC_ONE_BY_ONE_FILES = 64

/**
 * Gives a complete download its final name, all or nothing. The order matters after a power cut: contents and folders
 * reach the disk before the name does. Both directories must be on one file system. Files are read-only from here on;
 * folders stay writable, because a read-only folder could not be moved to the trash.
 */
export async function publishCopy(options: {
  /** The cache root; both folders lie below it. */
  readonly root: string
  readonly copyDirectory: string
  readonly finalDirectory: string
}): Promise<void> {
  const { root } = options
  const from = namesBelow(root, options.copyDirectory)
  const to = namesBelow(root, options.finalDirectory)
  using copy = findHeld(root, from)
  if (copy === undefined) throw new DscError('COPY_DAMAGED', `${options.copyDirectory} is gone`)
  const { mustSyncEach } = await finishManifest(copy.path)
  await syncTree(copy.path, { mustSyncEach })
  moveIntoPlace(root, { from, to })
}

function moveIntoPlace(root: string, names: { from: readonly string[]; to: readonly string[] }): void {
  const held: HeldFolder[] = []
  const hold = (folder: HeldFolder) => {
    held.push(folder)
    return folder
  }
  try {
    const source = hold(makeHeld(root, names.from.slice(0, -1)))
    const target = hold(makeHeld(root, names.to.slice(0, -1)))
    source.move(names.from.at(-1)!, target, names.to.at(-1)!)
    target.sync()
    hold(makeHeld(root, names.to.slice(0, -2))).sync() // the folder itself may be new
  } finally {
    for (const folder of held) folder.close()
  }
}

/** Folds the journal into the manifest: a published copy's manifest is one file, never written again. */
async function finishManifest(copyDirectory: string): Promise<{ readonly mustSyncEach: boolean }> {
  const manifest = Manifest.open(copyDirectory)
  let mustSyncEach = false
  try {
    mustSyncEach = manifest.readSetting('must_sync_each') !== undefined
    const missing = manifest.count('missing').files
    if (missing > 0)
      throw new DscError(
        'COPY_DAMAGED',
        `${copyDirectory}: ${formatCount(missing, 'object is', 'objects are')} not fetched`,
        {
          hint: 'run the same command again: finished files are kept',
        },
      )
    manifest.blocks.drop()
    await layHubCache(copyDirectory, manifest)
    await manifest.finish()
  } finally {
    manifest.close()
  }
  changeFileMode(manifestPath(copyDirectory), 0o444)
  markUntouched(copyDirectory)
  return { mustSyncEach }
}

async function syncTree(
  copyDirectory: string,
  { mustSyncEach }: { readonly mustSyncEach: boolean },
): Promise<void> {
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

/** Flushes the contents of a file or folder to disk. */
export async function syncPath(path: string): Promise<void> {
  await using handle = await open(path, 'r')
  await handle.sync()
}
