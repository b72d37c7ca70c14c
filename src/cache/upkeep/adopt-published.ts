import { lstat, realpath } from 'node:fs/promises'
import { isMarked, placeOf } from '../adopted-folder.js'
import type { Cache } from '../cache.js'
import { filesDirectory, isCopyDirectoryOf } from '../cache-layout.js'
import { readHeldManifest } from '../held-manifest.js'
import { isOwnSource } from './adopted-before.js'
import { createCopyId, describeAdopted, NO_SOURCE, NOT_MARKED } from './adopted-copy.js'
import { MAX_FORGOTTEN_LEASE_MS } from './plan-clean-up.js'

/**
 * Adds a published copy to a record that does not know it (one that was lost, or is new). False if the directory does
 * not hold a complete copy under its own name.
 */
export async function adoptPublishedDirectory(cache: Cache, directory: string): Promise<boolean> {
  const manifest = readHeldManifest(cache.root, directory)
  if (!manifest?.isComplete) return false
  const { dataset, listing, stripe } = manifest
  const published = { dataset: dataset.name, version: listing.version }
  if (!isCopyDirectoryOf(cache.root, published, directory)) return false
  const files = filesDirectory(directory)
  const found = await lstat(files).catch(() => undefined)
  if (found === undefined) return false // somebody removed it and left the manifest
  const isElsewhere = found.isSymbolicLink() // an adopted folder stays at its own place
  const path = isElsewhere ? await realpath(files).catch(() => undefined) : files
  if (path === undefined) return false // the adopted folder is gone
  // A folder that is its own only source cannot be fetched again: evicting it would lose the data.
  const isOnlySource = isElsewhere && (await isOwnSource(path, dataset))
  const copyId = createCopyId(directory)
  const place = placeOf(cache, { dataset: dataset.name, version: listing.version, copyId, path })
  const keptBecause = isOnlySource ? NO_SOURCE : isElsewhere && !isMarked(place) ? NOT_MARKED : undefined
  const nowMs = cache.nowMs()
  const copy = await describeAdopted({
    copyId,
    node: cache.node,
    dataset,
    listing,
    stripe,
    directory,
    path,
    isElsewhere,
    keptBecause,
    nowMs,
  })
  if (!(await cache.record.addAdopted(copy, nowMs))) return false
  if (keptBecause === undefined) await keepForUnknownUsers(cache, copyId)
  return true
}

/** Holders that got the path before the record was lost no longer have a lease: act as if each had taken one now. */
async function keepForUnknownUsers(cache: Cache, copyId: string): Promise<void> {
  const nowMs = cache.nowMs()
  const expiresAtMs = nowMs + MAX_FORGOTTEN_LEASE_MS
  const lease = { task: 'unknown (found on disk)', holder: { kind: 'ttl' as const }, expiresAtMs }
  await cache.record.leaseCopy({ copyId, purpose: 'use', lease }, nowMs)
}
