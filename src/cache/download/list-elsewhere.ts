import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withClosers } from '../../failure/closers.js'
import type { Listing } from '../../manifest/listing.js'
import type { Dataset } from '../../model/dataset.js'
import { removeDirectory } from '../../platform/remove-directory.js'
import type { Cache } from '../cache.js'
import { listIntoManifest } from './list-into-manifest.js'

/** Lists a source outside the cache and keeps nothing: returns its present content and version. */
export function listElsewhere(
  opener: Pick<Cache, 'openSource'>,
  dataset: Dataset,
  signal: AbortSignal,
): Promise<Listing> {
  return readListing(opener, { dataset, signal }, (listing) => listing)
}

/** Like `listElsewhere`; `read` reads the manifest in `copyDirectory` before it is removed. `listMs`: of the listing. */
export function readListing<T>(
  opener: Pick<Cache, 'openSource'>,
  { dataset, signal }: { readonly dataset: Dataset; readonly signal: AbortSignal },
  read: (listing: Listing, found: { readonly copyDirectory: string; readonly listMs: number }) => T,
): Promise<T> {
  return withClosers(async (closers) => {
    const copyDirectory = await mkdtemp(join(tmpdir(), 'dsc-plan-'))
    closers.add(() => removeDirectory(copyDirectory))
    const source = await opener.openSource(dataset)
    closers.add(() => source.close())
    const beganMs = performance.now()
    const listing = await listIntoManifest({ source, dataset, copyDirectory, signal })
    return read(listing, { copyDirectory, listMs: performance.now() - beganMs })
  })
}
