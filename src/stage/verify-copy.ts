import { join, relative } from 'node:path'
import { filesDirectory } from './cache-layout.js'
import { checkObject, type ObjectDamage } from './check-object.js'
import { describeManifestFailure, openPublishedManifest } from './manifest-db.js'
import type { ObjectRow } from './object-row.js'
import { throwIfStopped } from './retry.js'
import { walkTree } from './walk-tree.js'

/** A path of a copy that is not as the manifest says. */
export interface Damage {
  /** Relative to the copy's `files/`; for objects also the key. */
  readonly path: string
  readonly problem: ObjectDamage['problem'] | 'unexpected'
  readonly expected: string
  readonly found: string
  /** Wrong parts of a file in several; absent = the whole file. */
  readonly parts?: readonly number[]
}

/** What verifying a copy found. No damages = every byte is what was fetched and proven. */
export interface Verification {
  readonly checkedFiles: number
  readonly checkedBytes: number
  readonly damages: readonly Damage[]
}

/**
 * Reads every file of a published copy and compares it with the manifest; also finds files that do not belong.
 * Rejects with COPY_DAMAGED when the manifest itself cannot be read.
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
  const db = openPublishedManifest(copyDirectory)
  const damages: Damage[] = []
  let checkedFiles = 0
  let checkedBytes = 0
  try {
    const page = db.prepare<[number], ObjectRow>(
      'SELECT * FROM object WHERE id > ? AND state <> 2 ORDER BY id LIMIT 500',
    )
    for (let rows = page.all(0); rows.length > 0; rows = page.all(rows.at(-1)!.id)) {
      for (const row of rows) {
        throwIfStopped(signal)
        const damage = await checkObject(db, row, join(files, row.key), signal)
        if (damage) damages.push({ path: row.key, ...damage })
        checkedFiles += 1
        checkedBytes += row.size_bytes
        onProgress?.({ checkedFiles, checkedBytes })
      }
    }
    const isKey = db.prepare<[string], unknown>('SELECT 1 FROM object WHERE key = ? AND state <> 2')
    for await (const entry of walkTree(files)) {
      throwIfStopped(signal)
      const path = relative(files, entry.path)
      if (entry.kind === 'directory' || isKey.get(path)) continue
      damages.push({ path, problem: 'unexpected', expected: 'nothing', found: `a ${entry.kind}` })
    }
  } finally {
    db.close()
  }
  return { checkedFiles, checkedBytes, damages }
}
