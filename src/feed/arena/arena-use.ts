import type { ArenaSpace } from './arena-space.js'
import type { ArenaZone } from './arena-zone.js'

/** Use of an arena's bytes at a moment. */
interface ArenaUseCount {
  /** Bytes that clients are reading. */
  readonly leasedBytes: number
  /** Bytes of holes between used or evictable extents, below the highest extent of each end. */
  readonly holeBytes: number
}

/** Counts the bytes that clients hold, and the bytes of holes. */
export function countArenaUse(arena: ArenaSpace): ArenaUseCount {
  return {
    leasedBytes: countLeased(arena, arena.bottom) + countLeased(arena, arena.top),
    holeBytes: countHoles(arena.bottom) + countHoles(arena.top),
  }
}

function countLeased({ extents }: ArenaSpace, zone: ArenaZone): number {
  let bytes = 0
  for (const extent of zone) if (extents.stateOf(extent) === 'leased') bytes += extents.lengthOf(extent)
  return bytes
}

const countHoles = (zone: ArenaZone): number => zone.usedBytes - zone.liveBytes - zone.doneBytes
