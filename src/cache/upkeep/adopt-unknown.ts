import type { Cache } from '../cache.js'
import { publishedDirectoryOf } from '../eviction/finish-evictions.js'
import { saveNode } from '../save-node.js'
import { adoptPublishedDirectory } from './adopt-published.js'
import { CacheDirectories } from './observe-directories.js'

/**
 * Adds complete copies of a dataset that are on disk but not in the record (it was lost, or restored from an earlier
 * day), before anything is fetched beside them. Returns whether there were any.
 */
export async function adoptUnknownCopies(cache: Cache, dataset: string): Promise<boolean> {
  // Directories first: the row of a copy is older than its directory.
  const directories = new CacheDirectories(cache.root).list('copies', dataset)
  if (directories.length === 0) return false
  const copies = await cache.record.listCopies({ node: cache.node, dataset }, cache.nowMs())
  const known = new Set(copies.flatMap((copy) => [copy.directory, publishedDirectoryOf(cache, copy)]))
  const unlisted = directories.filter((path) => !known.has(path))
  if (unlisted.length === 0) return false
  await saveNode(cache) // a record that was lost does not know the node either
  let hasAdopted = false
  for (const directory of unlisted) {
    if (await adoptPublishedDirectory(cache, directory)) hasAdopted = true
  }
  return hasAdopted
}
