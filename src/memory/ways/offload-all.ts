import { findMovable, MIN_MOVE_BYTES } from '../plan/candidates.js'
import type { MemoryPlan, PlannedMove } from '../plan/plan-format.js'
import { findLifetimes } from '../step/lifetimes.js'
import type { MemoryProfile } from '../step/profile.js'
import { layOutTimeline } from '../step/timeline.js'

/**
 * Simulates tools without a plan: every feature map leaves and is fetched when it is needed. With `isBlocking` the
 * computation waits for every copy out, as `save_on_cpu` does without pinned memory.
 */
export function offloadAll(
  profile: MemoryProfile,
  {
    isBlocking,
    smallestBytes = MIN_MOVE_BYTES,
  }: { readonly isBlocking: boolean; readonly smallestBytes?: number | undefined },
): Pick<MemoryPlan, 'moves' | 'arenas' | 'options'> {
  const timeline = layOutTimeline(profile)
  const lifetimes = findLifetimes(profile, timeline, { canReuse: false })
  const limits = { extras: [], smallestBytes }
  const { candidates } = findMovable(profile, { timeline, lifetimes }, limits)
  const moves = candidates.map(
    (candidate): PlannedMove => ({
      storage: candidate.lifetime.storage,
      kind: candidate.lifetime.kind,
      name: candidate.lifetime.name,
      bytes: candidate.bytes,
      outAfter: candidate.outAfter,
      // Not blocking: memory is free when the copy has ended, awaited at the latest when it is needed again.
      freeBy: isBlocking ? candidate.outAfter + 1 : candidate.useAt,
      inAt: candidate.useAt,
      useAt: candidate.useAt,
      until: candidate.lifetime.to,
      hostOffset: 0,
      reloadOffset: null,
      outUs: candidate.outUs,
      inUs: candidate.inUs,
      slackUs: candidate.slackUs,
      refs: candidate.lifetime.refs,
      packs: [],
      unpacks: [],
      ticks: null,
    }),
  )
  return {
    moves,
    arenas: { host: { bytes: 0, liveBytes: 0 }, reload: { mode: 'slots', bytes: 0, liveBytes: 0 } },
    options: { move: [], smallestBytes, reuse: false },
  }
}
