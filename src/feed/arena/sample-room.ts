import type { ArenaSpace } from './arena-space.js'

/** The arena as seen by code that places samples in it. */
export interface SampleRoom {
  readonly space: ArenaSpace
  /** Bytes that a sample takes in the arena. */
  extentBytesOf(sample: number): number
  /** Bytes that prefetching may use now. */
  prefetchRoomBytes(): number
  /** Bytes that Cache_next may hold. */
  readonly carryBytes: number
}
