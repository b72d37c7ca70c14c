import { lstatSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import type { ReusableObject } from '../../manifest/attached-previous.js'
import { Manifest } from '../../manifest/manifest.js'
import { manifestPath } from '../../manifest/manifest-path.js'
import { onHeldPath } from '../../platform/held-path.js'
import { checkObject } from '../../proof/check-object.js'
import { filesDirectory } from '../cache-layout.js'
import { staleDirectory } from './stale-staging.js'
import { COPYING, LINKING, takeFile } from './take-file.js'

/**
 * Takes objects that have not changed since the previous copy: same key, size and etag, or the same checksum under any
 * key. By reflink where the file system can, else by hard link (both copies are read-only), else by copying. A file
 * that may have been written since that copy was published is first read and compared.
 */
export async function reusePrevious(
  manifest: Manifest,
  directories: { readonly copy: string; readonly previous: string },
  signal: AbortSignal,
): Promise<{ readonly reusedFiles: number; readonly reusedBytes: number }> {
  const counts = { reusedFiles: 0, reusedBytes: 0 }
  using previousManifest = Manifest.findPublished(directories.previous)
  if (previousManifest === undefined) return counts
  const previous = describePrevious(directories.previous, previousManifest)
  const unchecked = join(staleDirectory(directories.copy), 'unchecked')
  const attached = manifest.attachPrevious(directories.previous)
  for (const page of chain(attached.unchangedPages(), () => attached.equalPages())) {
    const taken: ReusableObject[] = []
    for (const object of page) {
      throwIfStopped(signal)
      const target = join(filesDirectory(directories.copy), object.key)
      if (await takeObject(object, { previous, target, unchecked, signal })) taken.push(object)
    }
    manifest.transaction(() => {
      for (const object of taken) attached.reuse(object)
    })
    counts.reusedFiles += taken.length
    for (const object of taken) counts.reusedBytes += object.sizeBytes
    await new Promise(setImmediate) // lets signals and progress through
  }
  attached.detach()
  return counts
}

function* chain<Value>(first: Iterable<Value>, second: () => Iterable<Value>): Generator<Value, undefined> {
  yield* first
  yield* second()
}

interface PreviousCopy {
  readonly files: string
  readonly manifest: Manifest
  /** The manifest was finished after the last file, so any later write to a file left a later time. */
  readonly publishedAtMs: number
  /** An adopted folder: its owner may write to its files, even during adoption. */
  readonly isAdopted: boolean
}

function describePrevious(directory: string, manifest: Manifest): PreviousCopy {
  const files = filesDirectory(directory)
  return {
    files,
    manifest,
    publishedAtMs: lstatSync(manifestPath(directory)).mtimeMs,
    isAdopted: lstatSync(files, { throwIfNoEntry: false })?.isSymbolicLink() ?? false,
  }
}

/**
 * Whether the file at `target` is now the object. If the old file is gone or has changed, the object is fetched
 * instead. A file that must be read is at `unchecked` until then: what a killed run left at `target` counts as right.
 */
async function takeObject(
  object: ReusableObject,
  options: {
    readonly previous: PreviousCopy
    readonly target: string
    readonly unchecked: string
    readonly signal: AbortSignal
  },
): Promise<boolean> {
  const { previous, target, unchecked, signal } = options
  const from = join(previous.files, object.previousKey)
  const stats = lstatSync(from, { throwIfNoEntry: false })
  if (!stats?.isFile() || stats.size !== object.sizeBytes) return false
  const places = previous.isAdopted ? COPYING : LINKING
  const take = (to: string) => takeFile(from, to, { stats, places })
  const makesFolders = true
  if (!previous.isAdopted && stats.mtimeMs <= previous.publishedAtMs)
    return onHeldPath(target, take, { makesFolders })
  const takeAnew = (to: string) => {
    rmSync(to, { force: true })
    return take(to)
  }
  if (!onHeldPath(unchecked, takeAnew, { makesFolders })) return false
  const entry = previous.manifest.get(object.previousId)
  const expected = { ...entry, digests: previous.manifest.parts.digestsOf(entry) }
  if ((await checkObject(unchecked, expected, signal)) !== undefined) return false
  const place = (checked: string, to: string) => {
    rmSync(to, { force: true }) // renaming one link to a file to another does nothing
    renameSync(checked, to)
  }
  onHeldPath(unchecked, (checked) => onHeldPath(target, (to) => place(checked, to), { makesFolders }))
  return true
}
