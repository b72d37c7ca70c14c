import type { NodeAgent } from '../model/node.js'
import type { Cache } from './cache.js'
import { requireOwnNode } from './claim-node.js'

/**
 * Tells the record how this node is at present: its policy and its disk, for `dsc status` anywhere. `agent` is
 * given by the agent itself, null when it stops; without it what is known of the agent stays.
 */
export async function saveNode(cache: Cache, agent?: NodeAgent | null): Promise<void> {
  const { node, root: cacheRoot, identity } = cache
  const saved = await cache.record.saveNode({
    node,
    cacheRoot,
    identity,
    policy: cache.policy,
    disk: await cache.measureDisk(),
    seenAtMs: cache.nowMs(),
    ...(agent === undefined ? {} : { agent }),
  })
  // Two that both found the name free: the one who came second learns it here.
  if (saved.identity?.cacheId !== identity.cacheId) {
    await requireOwnNode(cache.record, { node, cacheRoot, identity })
  }
}
