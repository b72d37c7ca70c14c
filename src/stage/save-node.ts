import type { Cache } from './cache.js'

/** Tells the record how this node is at present: its policy and its disk, for `dsc status` anywhere. */
export async function saveNode(cache: Cache): Promise<void> {
  await cache.record.saveNode({
    node: cache.node,
    cacheRoot: cache.root,
    policy: cache.policy,
    disk: await cache.measureDisk(),
    seenAtMs: cache.nowMs(),
  })
}
