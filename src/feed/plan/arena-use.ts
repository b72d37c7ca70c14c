import type { ArenaPlan } from './arena-plan.js'
import type { ArenaZone } from './arena-zone.js'

/** How the bytes of an arena are used at a moment. */
export interface ArenaUseCount {
  /** Being read by clients. */
  readonly leasedBytes: number
  /** Between and behind what is in use or evictable, below the highest extent of each end. */
  readonly holeBytes: number
}

export function countArenaUse(arena: ArenaPlan): ArenaUseCount {
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
