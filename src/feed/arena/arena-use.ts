import type { ArenaSpace } from './arena-space.js'
import type { ArenaZone } from './arena-zone.js'

/** How the bytes of an arena are used at a moment. */
interface ArenaUseCount {
  /** Being read by clients. */
  readonly leasedBytes: number
  /** Between and behind what is in use or evictable, below the highest extent of each end. */
  readonly holeBytes: number
}

/** Counts the bytes that clients hold, and those of holes. */
export function countArenaUse(arena: ArenaSpace): ArenaUseCount {
  return {
    leasedBytes: countLeased(arena.bottom) + countLeased(arena.top),
    holeBytes: countHoles(arena.bottom) + countHoles(arena.top),
  }
}

function countLeased(zone: ArenaZone): number {
  let bytes = 0
  for (let at = zone.first; at; at = at.next) if (at.state === 'leased') bytes += at.length
  return bytes
}

const countHoles = (zone: ArenaZone): number => zone.usedBytes - zone.liveBytes - zone.doneBytes
