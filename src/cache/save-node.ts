import type { NodeAgent } from '../model/node.js'
import type { Cache } from './cache.js'
import { requireOwnNode } from './claim-node.js'
import { measureRoom } from './kept-copies.js'

/**
 * Saves this node's present state in the record: its policy and its disk, for `dsc status` on any node. `agent` is
 * given by the agent itself, null when it stops; if absent, the record keeps what it knows of the agent.
 */
export async function saveNode(cache: Cache, agent?: NodeAgent | null): Promise<void> {
  const { node, root: cacheRoot, identity } = cache
  const saved = await cache.record.saveNode({
    node,
    cacheRoot,
    identity,
    policy: cache.policy,
    disk: await measureRoom(cache),
    seenAtMs: cache.nowMs(),
    agent,
  })
  // If two caches both found the name free, the second one learns here that it is taken.
  if (saved.identity?.cacheId !== identity.cacheId) {
    await requireOwnNode(cache.record, { node, cacheRoot, identity })
  }
}
