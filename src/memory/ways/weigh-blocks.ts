import type { Block } from '../step/find-blocks.js'
import { findLifetimes, sumLiveBytes } from '../step/lifetimes.js'
import type { MemoryProfile } from '../step/profile.js'
import { sumForwardUs } from '../step/recompute-blocks.js'
import { layOutTimeline } from '../step/timeline.js'

/** Cost and gain of running one block again. */
export interface BlockWeight {
  readonly forwardUs: number
  /** Feature maps made inside. */
  readonly madeBytes: number
  /** The part of them held at the fullest event of the profiled step. */
  readonly heldBytes: number
}

/** The excess bytes at the step's fullest event, and how many of them the link could move away by then. */
export interface Surplus {
  readonly bytes: number
  readonly leavingBytes: number
  readonly bytesPerUs: number
}

/** Weighs blocks, whose layers are consecutive, in one pass over the profile. */
export function weighBlocks(
  profile: MemoryProfile,
  blocks: readonly Block[],
  budgetBytes: number,
): { readonly weights: readonly BlockWeight[]; readonly surplus: Surplus } {
  const timeline = layOutTimeline(profile)
  const lifetimes = findLifetimes(profile, timeline, { canReuse: false })
  const live = sumLiveBytes(lifetimes, timeline.events.length, profile.nonTorchBytes)
  const fullest = live.reduce((most, bytes, event) => (bytes > live[most]! ? event : most), 0)
  const made = new Float64Array(timeline.forwardCount + 1) // up to each forward event, like `held`
  const held = new Float64Array(timeline.forwardCount + 1)
  for (const { kind, born, from, to, bytes } of lifetimes) {
    if (kind !== 'feature' || born < 0 || born >= timeline.forwardCount) continue
    made[born + 1]! += bytes
    if (from <= fullest && fullest <= to) held[born + 1]! += bytes
  }
  for (let event = 1; event <= timeline.forwardCount; event++) {
    made[event]! += made[event - 1]!
    held[event]! += held[event - 1]!
  }
  const weights = blocks.map((block) => {
    const from = timeline.indexOf({ layer: block.layers[0]!, phase: 'fwd' })
    const end = from + block.layers.length
    return {
      forwardUs: sumForwardUs(profile, block),
      madeBytes: made[end]! - made[from]!,
      heldBytes: held[end]! - held[from]!,
    }
  })
  const bytesPerUs = profile.device.d2hGBs * 1e3
  const leavingBytes = timeline.startUs[fullest]! * bytesPerUs
  return { weights, surplus: { bytes: live[fullest]! - budgetBytes, leavingBytes, bytesPerUs } }
}

/**
 * How many of `order` should run again if only the fullest event counted: the excess not freed there leaves through the
 * link in the time before it. Close to the best count for every step with one peak.
 */
export function guessCount(
  order: readonly BlockWeight[],
  { bytes, leavingBytes, bytesPerUs }: Surplus,
): number {
  let count = 0
  let leastUs = Number.POSITIVE_INFINITY
  let againUs = 0
  let leftBytes = bytes - leavingBytes
  for (let at = 0; at <= order.length; at++) {
    const us = againUs + Math.max(0, leftBytes) / bytesPerUs
    if (us < leastUs) {
      leastUs = us
      count = at
    }
    againUs += order[at]?.forwardUs ?? 0
    leftBytes -= order[at]?.heldBytes ?? 0
  }
  return count
}
