import { constants, copyFileSync, existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DscError, type FailureCode, isDscError } from '../failure/dsc-error.js'
import { filesDirectory } from './cache-layout.js'
import { checkObject, type ObjectDamage } from './check-object.js'
import { describeDiskFailure } from './disk-failure.js'
import { openPublishedManifest } from './manifest-db.js'
import type { ObjectRow } from './object-row.js'
import { planParts } from './plan/plan-parts.js'
import { syncPath } from './publish-copy.js'
import { throwIfStopped, withRetries } from './retry.js'
import type { Fetcher, Source } from './source.js'
import { preallocate } from './transfer/file-sink.js'
import { transferPart, transferWhole } from './transfer/transfer.js'
import type { Damage } from './verify-copy.js'

const DEFAULT_STALL_TIMEOUT_MS = 60_000

/** A failure as it is told of a file or a copy, while others go on. */
export interface ToldFailure {
  readonly code: FailureCode
  readonly message: string
  readonly hint: string | undefined
}

export interface Repair {
  readonly repairedFiles: number
  readonly fetchedBytes: number
  /** Files that were not in the manifest. */
  readonly removedFiles: number
  /** Files of which the source no longer has these bytes: they are as they were. */
  readonly failures: readonly (ToldFailure & { readonly path: string })[]
}

/**
 * Makes a published copy what its manifest says: fetches damaged files, of large ones only the wrong parts, and
 * removes what does not belong. Each file is put together beside the tree, checked against the manifest, synced and
 * renamed into place, so that a reader sees the old file or the right one. Goes on after a file that the source no
 * longer has; rejects where no other file could fare better.
 */
export async function repairCopy(options: {
  readonly source: Source
  readonly copyDirectory: string
  readonly damages: readonly Damage[]
  /** Where files are put together: a folder of this name and six more characters, on the file system of the copy. */
  readonly benchPrefix: string
  readonly stallTimeoutMs?: number
  readonly signal: AbortSignal
}): Promise<Repair> {
  const { source, copyDirectory, damages, signal } = options
  const { stallTimeoutMs = DEFAULT_STALL_TIMEOUT_MS } = options
  const repair = { repairedFiles: 0, fetchedBytes: 0, removedFiles: 0 }
  const failures: Repair['failures'][number][] = []
  const db = openPublishedManifest(copyDirectory)
  const find = db.prepare<[string], ObjectRow>('SELECT * FROM object WHERE key = ?')
  await mkdir(dirname(options.benchPrefix), { recursive: true })
  const bench = await mkdtemp(options.benchPrefix)
  let fetcher: Fetcher | undefined
  try {
    for (const damage of damages) {
      throwIfStopped(signal)
      const target = join(filesDirectory(copyDirectory), damage.path)
      if (damage.problem === 'unexpected') {
        await rm(target, { recursive: true, force: true })
        repair.removedFiles += 1
        continue
      }
      const row = find.get(damage.path)
      if (!row) throw new DscError('USAGE', `${damage.path} is not in the manifest of ${copyDirectory}`)
      fetcher ??= await source.openFetcher({ connections: 4 })
      const draft = join(bench, `${row.id}`)
      try {
        repair.fetchedBytes += await fetchDraft({
          fetcher,
          row,
          damage,
          target,
          draft,
          stallTimeoutMs,
          signal,
        })
        const wrong = await checkObject(db, row, draft, signal)
        if (wrong) throw sourceChanged(source.url, row.key, wrong)
      } catch (error) {
        if (!isDscError(error, 'SOURCE_CHANGED', 'SOURCE_NOT_FOUND')) throw error
        failures.push({ path: row.key, ...tellFailure(error) })
        continue
      }
      await chmod(draft, 0o444)
      await syncPath(draft)
      if (damage.problem === 'not-a-file') await rm(target, { recursive: true, force: true })
      await mkdir(dirname(target), { recursive: true })
      await rename(draft, target)
      await syncPath(dirname(target))
      repair.repairedFiles += 1
    }
  } catch (error) {
    throw describeDiskFailure(error, copyDirectory)
  } finally {
    await fetcher?.close()
    await rm(bench, { recursive: true, force: true })
    db.close()
  }
  return { ...repair, failures }
}

/** What a failure says, as plain data. */
export function tellFailure({ code, message, hint }: DscError): ToldFailure {
  return { code, message, hint }
}

function sourceChanged(url: string, key: string, wrong: ObjectDamage): DscError {
  return new DscError(
    'SOURCE_CHANGED',
    `${url}${key}: expected ${wrong.expected}, found ${wrong.found}: the source no longer has the bytes of this version`,
    { hint: 'dsc prepare --refresh' },
  )
}

async function fetchDraft(options: {
  readonly fetcher: Fetcher
  readonly row: ObjectRow
  readonly damage: Damage
  readonly target: string
  readonly draft: string
  readonly stallTimeoutMs: number
  readonly signal: AbortSignal
}): Promise<number> {
  const { fetcher, row, damage, target, draft, signal } = options
  const object = {
    key: row.key,
    etag: row.etag,
    versionId: row.version_id,
    sizeBytes: row.size_bytes,
    path: draft,
  }
  if (row.part_bytes === null) {
    await withRetries(() => transferWhole(fetcher, object, options), { signal })
    return row.size_bytes
  }
  const parts = planParts(row.size_bytes, row.part_bytes)
  if (damage.parts && existsSync(target)) {
    copyFileSync(target, draft, constants.COPYFILE_FICLONE)
    await chmod(draft, 0o644)
  } else preallocate(draft, row.size_bytes)
  const wanted = damage.parts ? parts.filter((part) => damage.parts?.includes(part.number)) : parts
  let fetchedBytes = 0
  for (const part of wanted) {
    await withRetries(() => transferPart(fetcher, object, part, { ...options, proofAlgorithm: undefined }), {
      signal,
    })
    fetchedBytes += part.length
  }
  return fetchedBytes
}
