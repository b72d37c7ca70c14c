import { dirname } from 'node:path'
import type { Config } from '../../config/config.js'
import type { NodeEntry } from '../../model/node.js'
import type { DiskUsage } from '../../model/policy.js'
import { readDiskUsage } from '../../platform/disk-usage.js'

/** How this node is right now, by its configuration and its disk: fresher than what the record says of it. */
export async function measureOwnNode(config: Config, nowMs: number): Promise<NodeEntry> {
  const { root, policy } = config.cache
  return {
    node: config.node,
    cacheRoot: root,
    policy,
    disk: await readNearestDisk(root),
    seenAtMs: nowMs,
  }
}

/** The disk that holds `path`, or would hold it: a cache root is made when the first dataset is prepared. */
async function readNearestDisk(path: string): Promise<DiskUsage> {
  try {
    return await readDiskUsage(path)
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (!isMissing || dirname(path) === path) throw error
    return readNearestDisk(dirname(path))
  }
}
