import { mkdirSync } from 'node:fs'
import { DscError } from '../../failure/dsc-error.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import { keyToPath } from '../../manifest/key-to-path.js'
import { KnownObjects } from '../../manifest/known-objects.js'
import type { Listing } from '../../manifest/listing.js'
import { Manifest } from '../../manifest/manifest.js'
import { hasUsableManifest } from '../../manifest/manifest-file.js'
import { summarizeManifest } from '../../manifest/summarize-manifest.js'
import type { Stripe } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { formatCount } from '../../model/format-count.js'
import { describeDiskFailure } from '../../platform/disk-failure.js'
import { makeFolder } from '../../platform/shared-folder.js'
import type { OnRetry } from '../../sources/retry.js'
import { type ListedObject, ListingDisorder, type Source } from '../../sources/source.js'
import { filesDirectory } from '../cache-layout.js'
import { createKeyMatcher } from './match-keys.js'
import { setAside } from './stale-staging.js'

const SHOWN_KEYS = 5

/**
 * Lists a source into the manifest of `copyDirectory` and computes the version. Refuses keys that cannot be paths
 * before it fetches anything. Reuses a complete listing of the same dataset definition and drops an incomplete one. If
 * a complete listing no longer fits, its unchanged files are still reused. Memory stays bounded by a page of keys.
 */
export async function listIntoManifest(options: {
  readonly source: Source
  readonly dataset: Dataset
  readonly copyDirectory: string
  /** The stripe to fetch; absent = everything. The manifest names all objects either way. */
  readonly stripe?: Stripe | undefined
  /** The expected version: a kept listing of another version is redone; absent = any version will do. */
  readonly version?: string | undefined
  /** `refuse` (default): keys that cannot be paths fail the listing · `list`: no file will ever be written from it. */
  readonly unsafeKeys?: 'refuse' | 'list' | undefined
  /** Lists again even if there is a kept listing. */
  readonly isRelisted?: boolean | undefined
  /** Directory of a ready copy of the dataset; if the source has not changed since, no manifest is filled. */
  readonly knownDirectory?: string | undefined
  readonly onProgress?: (progress: { readonly objects: number; readonly bytes: number }) => void
  /** Current maximum of requests at once, 1 or more. Absent = as many as the source likes. */
  readonly requestLimit?: (() => number) | undefined
  readonly onRetry?: OnRetry
  /** Called at the end of a complete listing if entries of the source were left out. */
  readonly onLeftOut?: (problem: string) => void
  /** A request to the source fails after this long without a byte, in ms. Default 30,000. */
  readonly stallTimeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}): Promise<Listing> {
  const { copyDirectory, dataset, stripe } = options
  makeFolder(filesDirectory(copyDirectory))
  const kept = options.isRelisted ? undefined : readKeptListing(copyDirectory, dataset, stripe)
  if (kept && kept.version === (options.version ?? kept.version)) return kept
  await setAside(copyDirectory)
  mkdirSync(filesDirectory(copyDirectory))
  using manifest = Manifest.create(copyDirectory, { keys: options.unsafeKeys === 'list' ? 'any' : 'paths' })
  const definition = describeDefinition(dataset, stripe)
  const { knownDirectory } = options
  using known = knownDirectory === undefined ? undefined : KnownObjects.find(knownDirectory, definition)
  try {
    const counts = await insertObjects(manifest, { ...options, known })
    if (known && counts.isKnown) {
      const { skippedFolderMarkers, filteredObjects } = counts
      return { ...known.listing, skippedFolderMarkers, filteredObjects, isKnown: true }
    }
    if (counts.files === 0) throw describeEmpty(options.source, dataset, counts)
    if (stripe) manifest.keepStripe(stripe)
    const listing: Listing = {
      ...summarizeManifest(manifest, copyDirectory, options.unsafeKeys),
      skippedFolderMarkers: counts.skippedFolderMarkers,
      filteredObjects: counts.filteredObjects,
      ...manifest.count('kept'),
    }
    manifest.writeSetting('dataset', definition)
    if (stripe) manifest.writeSetting('stripe', JSON.stringify(stripe))
    manifest.writeSetting('definition', JSON.stringify(dataset))
    manifest.writeSetting('listing', JSON.stringify(listing)) // last: its presence marks the listing as complete
    return listing
  } catch (error) {
    throw describeDiskFailure(error, copyDirectory)
  }
}

function readKeptListing(
  copyDirectory: string,
  dataset: Dataset,
  stripe: Stripe | undefined,
): Listing | undefined {
  if (!hasUsableManifest(copyDirectory)) return undefined
  using manifest = Manifest.open(copyDirectory)
  const listing = manifest.readSetting('listing')
  const isSame = manifest.readSetting('dataset') === describeDefinition(dataset, stripe)
  if (listing === undefined || !isSame || manifest.readSetting('stale') !== undefined) return undefined
  return JSON.parse(listing) as Listing
}

interface Counts {
  files: number
  contentBytes: number
  skippedFolderMarkers: number
  filteredObjects: number
  /** Whether everything so far matches the known copy. */
  isKnown: boolean
}

type InsertOptions = Parameters<typeof listIntoManifest>[0] & { readonly known: KnownObjects | undefined }

async function insertObjects(manifest: Manifest, options: InsertOptions): Promise<Counts> {
  const { source, signal, requestLimit, onRetry, stallTimeoutMs } = options
  const leftOut: string[] = []
  const listOptions = {
    onRetry,
    onLeftOut: (path: string, reason: string) => {
      leftOut.push(`${JSON.stringify(path)}: ${reason}`)
    },
    stallTimeoutMs,
    signal,
    requestLimit,
  }
  try {
    const counts = await insertPages(manifest, options, source.list(listOptions))
    if (leftOut.length > 0) options.onLeftOut?.(describeLeftOut(leftOut))
    if (counts.filteredObjects > 0)
      options.onLeftOut?.(`${formatCount(counts.filteredObjects, 'object')} left out by include and exclude`)
    return counts
  } catch (error) {
    if (!(error instanceof ListingDisorder)) throw error
    manifest.clear()
    const again = source.list({ ...listOptions, isSequential: true })
    return insertPages(manifest, { ...options, known: undefined }, again)
  }
}

function describeLeftOut(leftOut: readonly string[]): string {
  const shown = leftOut.slice(0, SHOWN_KEYS).join('; ')
  const more = leftOut.length > SHOWN_KEYS ? `; and ${leftOut.length - SHOWN_KEYS} more` : ''
  return `${formatCount(leftOut.length, 'entry is', 'entries are')} left out: ${shown}${more}`
}

async function insertPages(
  manifest: Manifest,
  options: InsertOptions,
  pages: AsyncIterable<readonly ListedObject[]>,
): Promise<Counts> {
  const { source, dataset, signal, onProgress } = options
  const isWanted = createKeyMatcher(dataset)
  const counts: Counts = {
    files: 0,
    contentBytes: 0,
    skippedFolderMarkers: 0,
    filteredObjects: 0,
    isKnown: options.known !== undefined,
  }
  const insertKnown = () => {
    counts.isKnown = false
    for (const known of options.known?.takenPages() ?? []) manifest.add(known)
  }
  const refused: string[] = []
  let refusedCount = 0
  const mayBeFile = ({ key }: ListedObject): boolean => {
    const { problem } = options.unsafeKeys === 'list' ? { problem: null } : keyToPath(key)
    if (problem === null) return true
    refusedCount += 1
    if (refused.length < SHOWN_KEYS) refused.push(`${JSON.stringify(key)} ${problem}`)
    return false
  }
  for await (const page of pages) {
    throwIfStopped(signal)
    const wanted: ListedObject[] = []
    const markers: ListedObject[] = []
    for (const object of page) {
      if (!isWanted(object.key)) counts.filteredObjects += 1
      else if (object.sizeBytes === 0 && (object.key === '' || object.key.endsWith('/'))) markers.push(object)
      else wanted.push(object)
    }
    if (counts.isKnown && !options.known?.take(wanted)) insertKnown()
    // Known objects were checked to be paths when they were first listed.
    const taken = counts.isKnown ? wanted : wanted.filter(mayBeFile)
    if (refusedCount === 0 && !counts.isKnown) manifest.add(taken)
    manifest.markers.add(markers)
    counts.skippedFolderMarkers += markers.length
    counts.files += taken.length
    for (const object of taken) counts.contentBytes += object.sizeBytes
    onProgress?.({ objects: counts.files, bytes: counts.contentBytes })
  }
  if (counts.isKnown && !options.known?.isWhole) insertKnown()
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

/** Settings that affect the listing: another definition needs another listing. */
function describeDefinition(dataset: Dataset, stripe: Stripe | undefined): string {
  const { source, endpoint = null, include, exclude } = dataset
  const share = stripe && { stripe: [stripe.index, stripe.nodes.length] }
  return JSON.stringify({ source, endpoint, include, exclude, ...share })
}
