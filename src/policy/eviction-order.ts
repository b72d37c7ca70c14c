import type { Victim } from './take-by-share.js'

/** A copy's rank among those that may be evicted on its node. */
export interface EvictionRank {
  /** 1 = the next to be evicted. */
  readonly rank: number
  readonly candidates: number
  readonly reason: string
}

/** The order of eviction on a node: its head, and where the copies of one dataset stand in it. */
export interface EvictionOrder {
  /** The first to be evicted, in order. */
  readonly first: readonly Victim[]
  /** The dataset's copies that may be evicted, in order. */
  readonly ranks: readonly (EvictionRank & { readonly copyId: string })[]
}
