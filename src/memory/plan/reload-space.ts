import type { Lifetime } from '../step/lifetimes.js'
import type { Timeline } from '../step/timeline.js'
import { findMostLive, layOutArena } from './arena.js'
import type { Candidate } from './candidates.js'
import type { ReloadSpace } from './plan-format.js'
import { type ScheduledMove, type ScheduleLimits, scheduleMoves } from './schedule.js'

/** A schedule with the place of everything that comes back. */
export interface PlacedSchedule {
  readonly moves: readonly ScheduledMove[]
  readonly reload: ReloadSpace
  readonly reloadOffsets: ReadonlyMap<number, number>
}

/** How often the look-ahead is tightened before each reload gets memory of its own instead of one arena. */
const ATTEMPTS = 3

/**
 * Schedules `picks` and places their reloads; returns one or two ways, the preferred one first. One arena is best (no
 * allocator in the way), but it is allocated as a whole from the first copy in to the last use: if it does not fit, the
 * look-ahead is capped until it does, and the other way is memory of its own for every reload.
 */
export function scheduleAndPlace(
  timeline: Timeline,
  picks: readonly Candidate[],
  limits: ScheduleLimits,
): PlacedSchedule[] {
  const free = scheduleMoves(timeline, picks, limits)
  if (limits.isSlotted || !free.some((move) => isReloaded(move, timeline)))
    return [placeInSlots(timeline, free)]
  let reloadCapBytes = Number.POSITIVE_INFINITY
  let moves = free
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { placed, roomBytes } = placeInArena(timeline, moves, limits)
    if (placed) return moves === free ? [placed] : [placed, placeInSlots(timeline, free)]
    reloadCapBytes = Math.min(roomBytes, 0.95 * reloadCapBytes)
    if (reloadCapBytes <= 0) break
    moves = scheduleMoves(timeline, picks, { ...limits, reloadCapBytes })
  }
  return [placeInSlots(timeline, free)]
}

function placeInArena(
  timeline: Timeline,
  moves: readonly ScheduledMove[],
  limits: ScheduleLimits,
): { placed?: PlacedSchedule; roomBytes: number } {
  const reloads = moves.filter((move) => isReloaded(move, timeline))
  const { sizeBytes, liveBytes, offsets } = layOutArena(listReloads(reloads))
  const from = Math.min(...reloads.map((move) => move.inAt))
  const to = Math.max(...reloads.map((move) => Math.max(move.useAt, move.lifetime.to)))
  const rest = sumRestBytes(limits.liveBytes, moves)
  const roomBytes = limits.budgetBytes - Math.max(...rest.slice(from, to + 1))
  if (sizeBytes > roomBytes) return { roomBytes }
  const reload = { mode: 'arena', bytes: sizeBytes, liveBytes, from, to } as const
  return { placed: { moves, reload, reloadOffsets: offsets }, roomBytes }
}

function placeInSlots(timeline: Timeline, moves: readonly ScheduledMove[]): PlacedSchedule {
  const liveBytes = findMostLive(listReloads(moves.filter((move) => isReloaded(move, timeline))))
  return { moves, reload: { mode: 'slots', bytes: liveBytes, liveBytes }, reloadOffsets: new Map() }
}

/** Whether a move comes back into a reload slot: parameters return into their own storage. */
export function isReloaded(
  move: { readonly lifetime: Lifetime; readonly useAt: number },
  timeline: Timeline,
): boolean {
  return move.lifetime.kind === 'feature' && move.useAt < timeline.events.length
}

/** Bytes per event of everything but reloads: moved storages are gone from `freeBy` on. */
function sumRestBytes(liveBytes: readonly number[], moves: readonly ScheduledMove[]): number[] {
  const change = new Array<number>(liveBytes.length + 2).fill(0)
  for (const { freeBy, inAt, lifetime, bytes } of moves) {
    const goneTo = lifetime.kind === 'feature' ? lifetime.to : inAt - 1
    change[freeBy]! -= bytes
    change[Math.max(freeBy, goneTo + 1)]! += bytes
  }
  let gone = 0
  return liveBytes.map((bytes, event) => {
    gone += change[event]!
    return bytes + gone
  })
}

function listReloads(reloads: readonly ScheduledMove[]) {
  return reloads.map(({ lifetime, bytes, inAt, useAt }) => ({
    id: lifetime.storage,
    bytes,
    from: inAt,
    to: Math.max(useAt, lifetime.to),
  }))
}
