import type { NodeAgent } from '../model/node.js'
import type { Cache } from './cache.js'

/**
 * Tells the record how this node is at present: its policy and its disk, for `dsc status` anywhere. `agent` is
 * given by the agent itself, null when it stops; without it what is known of the agent stays.
 */
export async function saveNode(cache: Cache, agent?: NodeAgent | null): Promise<void> {
  await cache.record.saveNode({
    node: cache.node,
    cacheRoot: cache.root,
    policy: cache.policy,
    disk: await cache.measureDisk(),
    seenAtMs: cache.nowMs(),
    ...(agent === undefined ? {} : { agent }),
  })
}
