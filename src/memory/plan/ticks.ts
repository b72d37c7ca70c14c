import { findFirst } from '../../model/find-first.js'
import type { Lifetime } from '../step/lifetimes.js'
import type { MemoryProfile } from '../step/profile.js'
import type { Timeline } from '../step/timeline.js'
import type { PlannedMove } from './plan-format.js'

/** The executor's clock: the event of each tick (pack calls 0…P−1, then unpack calls), and how many are packs. */
export interface TickClock {
  readonly events: readonly number[]
  readonly packCount: number
}

/**
 * Translates event numbers to the only clock an executor has. The wait for a copy out goes to the last tick before
 * `freeBy`, the copy in to the first tick from `inAt` on: both err on the side of less memory.
 */
export function findTicks(
  clock: TickClock,
  move: { readonly lifetime: Lifetime; readonly freeBy: number; readonly inAt: number },
): PlannedMove['ticks'] {
  const { packs, unpacks } = move.lifetime
  if (move.lifetime.kind !== 'feature') return null
  if (clock.events.length === 0 || packs.length === 0 || unpacks.length === 0) return null
  const out = packs.at(-1)!
  const firstUse = clock.packCount + unpacks[0]!
  const free = Math.max(out, firstFrom(clock.events, move.freeBy) - 1)
  return { out, free, in: Math.min(firstFrom(clock.events, move.inAt), firstUse) }
}

/** `dtype|shape|stride` of every pack call: the executor compares it before it trusts the plan. */
export function signPacks(profile: MemoryProfile): string[] {
  const signatures = new Array<string>(profile.packLayers?.length ?? 0).fill('')
  for (const { dtype, shape, stride, pack } of profile.tensors)
    for (const sequence of pack) signatures[sequence] = `${dtype}|${shape.join(',')}|${stride.join(',')}`
  return signatures
}

/** Event of each tick, never descending: an unpack belongs to the backward of the layer that packed. */
export function layOutTicks(profile: MemoryProfile, timeline: Timeline): TickClock {
  const { packLayers = [], unpackOrder = [], unpackLayers = [] } = profile
  const events = [
    ...packLayers.map((layer) => timeline.indexOf({ layer, phase: 'fwd' })),
    ...unpackOrder.map((sequence, position) =>
      timeline.indexOf({ layer: unpackLayers[position] ?? packLayers[sequence]!, phase: 'bwd_param' }),
    ),
  ]
  let latest = 0
  const rising = events.map((event) => {
    latest = Math.max(latest, event)
    return latest
  })
  return { events: rising, packCount: packLayers.length }
}

/** The first tick whose event is `event` or later; the number of ticks if no tick is. */
function firstFrom(events: readonly number[], event: number): number {
  return findFirst(events.length, (tick) => events[tick]! >= event)
}
