import { randomBytes } from 'node:crypto'
import { lstat, realpath } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import type { CopyLock } from '../model/copy.js'
import { parseSourceUrl } from '../model/dataset.js'
import type { Cache } from './cache.js'
import { filesDirectory, isCopyDirectoryOf } from './cache-layout.js'
import { measureCopy } from './measure-copy.js'
import { readCopyManifest } from './read-copy-manifest.js'

/**
 * Puts a published copy that the record does not know (it was lost, or made anew) back into the record. False
 * when the directory does not hold a complete copy under its own name.
 */
export async function adoptPublishedDirectory(cache: Cache, directory: string): Promise<boolean> {
  const manifest = readCopyManifest(directory)
  if (!manifest?.isComplete) return false
  const { dataset, listing, stripe } = manifest
  if (!isCopyDirectoryOf(cache.root, dataset.name, listing.version, directory)) return false
  const files = filesDirectory(directory)
  const isElsewhere = (await lstat(files)).isSymbolicLink() // an adopted folder stays where it was found
  const path = isElsewhere ? await realpath(files).catch(() => undefined) : files
  if (path === undefined) return false // it was taken away
  // A folder whose only source is itself cannot be fetched again: evicting it would lose the data.
  const isOnlySource = isElsewhere && pathToFileURL(path).href === dataset.source.replace(/\/$/, '')
  const fileBytes = isElsewhere ? await measureCopy(path) : { diskBytes: 0, inodes: 0 }
  const measured = await measureCopy(directory)
  const chargedBytes = measured.diskBytes + fileBytes.diskBytes
  const nowMs = cache.nowMs()
  return cache.record.addAdopted(
    {
      copyId: randomBytes(8).toString('hex'),
      dataset: dataset.name,
      node: cache.node,
      version: listing.version,
      state: 'ready',
      origin: isElsewhere ? 'local' : parseSourceUrl(dataset.source).scheme,
      source: isOnlySource ? null : dataset,
      directory,
      path,
      chargedBytes,
      chargedInodes: measured.inodes + fileBytes.inodes,
      writtenBytes: chargedBytes,
      files: listing.files,
      contentBytes: listing.contentBytes,
      lock: isOnlySource ? lockAdopted(nowMs) : null,
      lastTask: null,
      lastUsedAtMs: nowMs,
      createdAtMs: nowMs,
      readyAtMs: nowMs,
      ...(stripe && { stripe }),
    },
    nowMs,
  )
}

/** The lock of a folder that nobody could fetch again. */
export function lockAdopted(nowMs: number): CopyLock {
  return { by: 'dsc adopt', reason: 'no remote source is known', atMs: nowMs }
}
