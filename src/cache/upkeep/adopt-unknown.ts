import { basename } from 'node:path'
import type { Cache } from '../cache.js'
import { publishedDirectoryOf } from '../eviction/finish-evictions.js'
import { saveNode } from '../save-node.js'
import { adoptPublishedDirectory } from './adopt-published.js'
import { CacheDirectories } from './observe-directories.js'

/**
 * Adds complete copies of a dataset that are on disk but not in the record (it was lost, or restored from an earlier
 * day), before anything is fetched beside them. If the record knows no copy of the node, it is a new one: copies of
 * every dataset are added, as all of them count for the limits. The node itself says nothing: an agent saves it first.
 * Returns whether there were any.
 */
export async function adoptUnknownCopies(cache: Cache, dataset: string): Promise<boolean> {
  // Directories first: the row of a copy is older than its directory.
  const directories = new CacheDirectories(cache.root)
  const [known] = await cache.record.listCopies({ node: cache.node, limit: 1 }, cache.nowMs())
  const datasets = known ? [dataset] : directories.list('copies').map((path) => basename(path))
  const found = datasets.map((name) => ({ name, paths: directories.list('copies', name) }))
  if (found.every(({ paths }) => paths.length === 0)) return false
  let hasAdopted = false
  for (const { name, paths } of found) {
    const copies = await cache.record.listCopies({ node: cache.node, dataset: name }, cache.nowMs())
    const listed = new Set(copies.flatMap((copy) => [copy.directory, publishedDirectoryOf(cache, copy)]))
    const unlisted = paths.filter((path) => !listed.has(path))
    if (unlisted.length > 0) await saveNode(cache)
    for (const path of unlisted) if (await adoptPublishedDirectory(cache, path)) hasAdopted = true
  }
  return hasAdopted
}
