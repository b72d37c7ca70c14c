import { mkdirSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { DscError } from '../failure/dsc-error.js'
import type { Stripe } from '../model/copy.js'
import type { Dataset } from '../model/dataset.js'
import { formatCount } from '../model/format-count.js'
import { filesDirectory } from './cache-layout.js'
import { describeDiskFailure } from './disk-failure.js'
import { keepStripe } from './keep-stripe.js'
import { createManifest, hasUsableManifest, openManifest, readSetting, writeSetting } from './manifest-db.js'
import { createKeyMatcher } from './match-keys.js'
import { keyToPath } from './plan/key-to-path.js'
import { type OnRetry, throwIfStopped } from './retry.js'
import { type ListedObject, ListingDisorder, type Source } from './source.js'
import { setAside } from './stale-staging.js'
import { summarizeManifest } from './summarize-manifest.js'

/** What a listing found, before any content is fetched. */
export interface Listing {
  /** Digest of the whole manifest, hexadecimal: the dataset's version. */
  readonly version: string
  /** Objects to fetch, and the sum of their sizes: of a stripe, its share. */
  readonly files: number
  readonly contentBytes: number
  /** Upper bound of the blocks the copy takes, directories and manifest included. */
  readonly neededBytes: number
  readonly neededInodes: number
  /** Empty objects ending in `/`, which consoles create to show folders; they have no file. */
  readonly skippedFolderMarkers: number
  /** Objects that the globs left out. */
  readonly filteredObjects: number
}

const SHOWN_KEYS = 5

/**
 * Lists a source into the manifest of `copyDirectory` and computes the version. Refuses keys that cannot be paths
 * before anything is fetched. A complete listing of the same dataset definition is reused; a half one is thrown
 * away; of one that no longer fits, the files that did not change are used again. Memory stays bounded by a page of keys.
 */
export async function listIntoManifest(options: {
  readonly source: Source
  readonly dataset: Dataset
  readonly copyDirectory: string
  /** The part to fetch; absent = everything. The manifest names all objects in any case. */
  readonly stripe?: Stripe | undefined
  /** A kept listing of another version is made again; absent = any will do. */
  readonly version?: string | undefined
  /** Lists again what was listed before. */
  readonly isRelisted?: boolean | undefined
  readonly onProgress?: (progress: { readonly objects: number }) => void
  /** Most requests at once just now, 1 or more. Absent = as many as the source likes. */
  readonly requestLimit?: (() => number) | undefined
  readonly onRetry?: OnRetry
  readonly signal?: AbortSignal
}): Promise<Listing> {
  const { copyDirectory, dataset, stripe } = options
  mkdirSync(filesDirectory(copyDirectory), { recursive: true })
  const kept = options.isRelisted ? undefined : readKeptListing(copyDirectory, dataset, stripe)
  if (kept && kept.version === (options.version ?? kept.version)) return kept
  await setAside(copyDirectory)
  mkdirSync(filesDirectory(copyDirectory))
  const db = createManifest(copyDirectory)
  try {
    const counts = await insertObjects(db, options)
    if (counts.files === 0) throw describeEmpty(options.source, dataset, counts)
    const share = stripe ? keepStripe(db, stripe) : counts
    const listing: Listing = { ...summarizeManifest(db, copyDirectory), ...counts, ...share }
    writeSetting(db, 'dataset', describeDefinition(dataset, stripe))
    if (stripe) writeSetting(db, 'stripe', JSON.stringify(stripe))
    writeSetting(db, 'definition', JSON.stringify(dataset)) // whole, so that a lost record can be made again
    writeSetting(db, 'listing', JSON.stringify(listing)) // last: its presence says the listing is complete
    return listing
  } catch (error) {
    throw describeDiskFailure(error, copyDirectory)
  } finally {
    db.close()
  }
}

function readKeptListing(
  copyDirectory: string,
  dataset: Dataset,
  stripe: Stripe | undefined,
): Listing | undefined {
  if (!hasUsableManifest(copyDirectory)) return undefined
  const db = openManifest(copyDirectory)
  try {
    const listing = readSetting(db, 'listing')
    const isSame = readSetting(db, 'dataset') === describeDefinition(dataset, stripe)
    if (listing === undefined || !isSame || readSetting(db, 'stale') !== undefined) return undefined
    return JSON.parse(listing) as Listing
  } finally {
    db.close()
  }
}

interface Counts {
  files: number
  contentBytes: number
  skippedFolderMarkers: number
  filteredObjects: number
}

async function insertObjects(
  db: Database.Database,
  options: Parameters<typeof listIntoManifest>[0],
): Promise<Counts> {
  const { source, signal, requestLimit, onRetry } = options
  const listOptions = { onRetry, ...(signal && { signal }), ...(requestLimit && { requestLimit }) }
  try {
    return await insertPages(db, options, source.list(listOptions))
  } catch (error) {
    if (!(error instanceof ListingDisorder)) throw error
    db.exec('DELETE FROM object')
    return insertPages(db, options, source.list({ ...listOptions, isSequential: true }))
  }
}

async function insertPages(
  db: Database.Database,
  options: Parameters<typeof listIntoManifest>[0],
  pages: AsyncIterable<readonly ListedObject[]>,
): Promise<Counts> {
  const { source, dataset, signal, onProgress } = options
  const isWanted = createKeyMatcher(dataset)
  const insert = db.prepare(
    'INSERT INTO object (key, size_bytes, etag, version_id, checksum_algorithm, checksum_value, modified_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)',
  )
  const insertPage = db.transaction((objects: readonly ListedObject[]) => {
    for (const object of objects) {
      const { checksum } = object
      insert.run(
        object.key,
        object.sizeBytes,
        object.etag,
        object.versionId,
        checksum?.algorithm ?? null,
        checksum?.value ?? null,
        object.modifiedAtMs,
      )
    }
  })
  const counts: Counts = { files: 0, contentBytes: 0, skippedFolderMarkers: 0, filteredObjects: 0 }
  const refused: string[] = []
  let refusedCount = 0
  for await (const page of pages) {
    throwIfStopped(signal)
    const taken: ListedObject[] = []
    for (const object of page) {
      if (!isWanted(object.key)) counts.filteredObjects += 1
      else if (object.sizeBytes === 0 && (object.key === '' || object.key.endsWith('/')))
        counts.skippedFolderMarkers += 1
      else {
        const { problem } = keyToPath(object.key)
        if (problem === null) taken.push(object)
        else {
          refusedCount += 1
          if (refused.length < SHOWN_KEYS) refused.push(`${JSON.stringify(object.key)} ${problem}`)
        }
      }
    }
    if (refusedCount === 0) insertPage(taken)
    counts.files += taken.length
    for (const object of taken) counts.contentBytes += object.sizeBytes
    onProgress?.({ objects: counts.files })
  }
  if (refusedCount > 0) {
    const more = refusedCount > refused.length ? ` and ${refusedCount - refused.length} more` : ''
    throw new DscError('KEY_UNSAFE', `${source.url}: cannot become files: ${refused.join('; ')}${more}`, {
      hint: 'rename these objects, or list them under exclude: a pattern equal to a key matches it',
    })
  }
  return counts
}

function describeEmpty(source: Source, dataset: Dataset, counts: Counts): DscError {
  const { filteredObjects, skippedFolderMarkers } = counts
  if (filteredObjects > 0)
    return new DscError(
      'SOURCE_EMPTY',
      `${source.url}: ${formatCount(filteredObjects, 'object')} listed, none of which passes include and exclude`,
      {
        hint: `check include: ${JSON.stringify(dataset.include)} and exclude: ${JSON.stringify(dataset.exclude)}`,
      },
    )
  const markers =
    skippedFolderMarkers > 0 ? `, only ${formatCount(skippedFolderMarkers, 'folder marker')}` : ''
  return new DscError('SOURCE_EMPTY', `${source.url}: no objects under this prefix${markers}`, {
    hint: 'check the prefix; it names a folder, so `data` means `data/`',
  })
}

/** Settings that change what is listed: another definition needs another listing. */
function describeDefinition(dataset: Dataset, stripe: Stripe | undefined): string {
  const { source, endpoint = null, include, exclude } = dataset
  const share = stripe && { stripe: [stripe.index, stripe.nodes.length] }
  return JSON.stringify({ source, endpoint, include, exclude, ...share })
}
