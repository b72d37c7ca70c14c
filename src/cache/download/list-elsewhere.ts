import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Listing } from '../../manifest/listing.js'
import type { Dataset } from '../../model/dataset.js'
import { removeDirectory } from '../../platform/remove-directory.js'
import type { Cache } from '../cache.js'
import { listIntoManifest } from './list-into-manifest.js'

/** Lists a source outside the cache and keeps nothing: returns its present content and version. */
export async function listElsewhere(
  cache: Pick<Cache, 'openSource'>,
  dataset: Dataset,
  signal: AbortSignal,
): Promise<Listing> {
  const copyDirectory = await mkdtemp(join(tmpdir(), 'dsc-plan-'))
  const source = await cache.openSource(dataset)
  try {
    return await listIntoManifest({ source, dataset, copyDirectory, signal })
  } finally {
    await source.close()
    await removeDirectory(copyDirectory)
  }
}
