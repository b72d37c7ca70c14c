import type { Cache } from '../cache/cache.js'
import type { Surroundings } from '../cache/surroundings.js'

/** The part of a node's cache that every user may see, even if it belongs to the node's service. */
export type SeenCache = Pick<Cache, 'record' | 'node' | 'root' | 'nowMs'>

export async function seeCache(context: Surroundings): Promise<SeenCache> {
  const [{ node, cache }, record] = [await context.config(), await context.openRecord()]
  return { record, node, root: cache.root, nowMs: context.nowMs }
}
