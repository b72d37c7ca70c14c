import { randomBytes } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { parseSourceUrl } from '../model/dataset.js'
import type { Cache } from './cache.js'
import { copyDirectory, filesDirectory } from './cache-layout.js'
import { measureCopy } from './measure-copy.js'
import { readCopyManifest } from './read-copy-manifest.js'

/**
 * Puts a published copy that the record does not know (it was lost, or made anew) back into the record. False
 * when the directory does not hold a complete copy under its own name.
 */
export async function adoptPublishedDirectory(cache: Cache, directory: string): Promise<boolean> {
  const manifest = readCopyManifest(directory)
  if (!manifest?.isComplete) return false
  const { dataset, listing } = manifest
  if (directory !== copyDirectory(cache.root, dataset.name, listing.version)) return false
  const measured = await measureCopy(directory)
  const nowMs = cache.nowMs()
  return cache.record.addAdopted(
    {
      copyId: randomBytes(8).toString('hex'),
      dataset: dataset.name,
      node: cache.node,
      version: listing.version,
      state: 'ready',
      origin: parseSourceUrl(dataset.source).scheme,
      source: dataset,
      directory,
      path: await realpath(filesDirectory(directory)),
      chargedBytes: measured.diskBytes,
      chargedInodes: measured.inodes,
      writtenBytes: measured.diskBytes,
      files: listing.files,
      contentBytes: listing.contentBytes,
      lock: null,
      lastTask: null,
      lastUsedAtMs: nowMs,
      createdAtMs: nowMs,
      readyAtMs: nowMs,
    },
    nowMs,
  )
}
