import { join, relative } from 'node:path'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import { Manifest } from '../../manifest/manifest.js'
import { describeManifestFailure } from '../../manifest/manifest-file.js'
import { walkTree } from '../../platform/walk-tree.js'
import { checkObject, type ObjectDamage } from '../../proof/check-object.js'
import { filesDirectory } from '../cache-layout.js'

/** A path of a copy that differs from the manifest. */
export interface Damage {
  /** Relative to the copy's `files/`; for an object, also its key. */
  readonly path: string
  readonly problem: ObjectDamage['problem'] | 'unexpected'
  readonly expected: string
  readonly found: string
  /** Wrong parts of a file in several parts; absent = the whole file. */
  readonly parts?: readonly number[]
}

/** Result of verifying a copy. No damages = every byte is as fetched and verified. */
export interface Verification {
  readonly checkedFiles: number
  readonly checkedBytes: number
  readonly damages: readonly Damage[]
}

/**
 * Reads every file of a published copy and compares it with the manifest; also finds files that do not belong. Rejects
 * with COPY_DAMAGED if the manifest itself cannot be read.
 */
export async function verifyCopy(options: {
  readonly copyDirectory: string
  readonly signal: AbortSignal
  readonly onProgress?: (progress: { readonly checkedFiles: number; readonly checkedBytes: number }) => void
}): Promise<Verification> {
  try {
    return await verifyFiles(options)
  } catch (error) {
    throw describeManifestFailure(error, options.copyDirectory)
  }
}

async function verifyFiles(options: Parameters<typeof verifyCopy>[0]): Promise<Verification> {
  const { copyDirectory, signal, onProgress } = options
  const files = filesDirectory(copyDirectory)
  using manifest = Manifest.openPublished(copyDirectory)
  const damages: Damage[] = []
  let checkedFiles = 0
  let checkedBytes = 0
  for (const entry of manifest.entries('kept')) {
    throwIfStopped(signal)
    const expected = { ...entry, digests: manifest.parts.digestsOf(entry) }
    const damage = await checkObject(join(files, entry.key), expected, signal)
    if (damage) damages.push({ path: entry.key, ...damage })
    checkedFiles += 1
    checkedBytes += entry.sizeBytes
    onProgress?.({ checkedFiles, checkedBytes })
  }
  for await (const entry of walkTree(files)) {
    throwIfStopped(signal)
    const path = relative(files, entry.path)
    if (entry.kind === 'directory' || manifest.has(path, 'kept')) continue
    damages.push({ path, problem: 'unexpected', expected: 'nothing', found: `a ${entry.kind}` })
  }
  return { checkedFiles, checkedBytes, damages }
}
