import { dirname } from 'node:path'
import type { Config } from '../../config/config.js'
import type { NodeEntry } from '../../model/node.js'
import type { DiskUsage } from '../../model/policy.js'
import { readDiskUsage } from '../../platform/disk-usage.js'
import { measureRoom } from '../kept-copies.js'

/** This node right now, from its configuration and its disk: fresher than its entry in the record. */
export async function measureOwnNode(config: Config, nowMs: number): Promise<NodeEntry> {
  const { root, policy } = config.cache
  return {
    node: config.node,
    cacheRoot: root,
    policy,
    disk: await measureRoom({ root, measureDisk: () => readNearestDisk(root) }),
    seenAtMs: nowMs,
  }
}

/** The disk that holds `path` or would hold it: the cache root is created when the first dataset is prepared. */
async function readNearestDisk(path: string): Promise<DiskUsage> {
  try {
    return await readDiskUsage(path)
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (!isMissing || dirname(path) === path) throw error
    return readNearestDisk(dirname(path))
  }
}
