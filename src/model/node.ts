import type { CachePolicy, DiskUsage } from './policy.js'

/** A machine (or a second agent on one machine) with one cache root, as it last described itself. */
export interface NodeEntry {
  readonly node: string
  readonly cacheRoot: string
  readonly policy: CachePolicy
  readonly disk: DiskUsage
  /** Unix epoch in ms. */
  readonly seenAtMs: number
}
