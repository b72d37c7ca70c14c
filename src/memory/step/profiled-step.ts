import { findLifetimes, type Lifetime, type ReuseOption, sumLiveBytes } from './lifetimes.js'
import type { MemoryProfile } from './profile.js'
import { layOutTimeline, type Timeline } from './timeline.js'

/** One step of a profile when nothing moves: its events, and the storages that each makes, touches and ends. */
export interface ProfiledStep {
  readonly timeline: Timeline
  /** One per storage, ascending. */
  readonly lifetimes: readonly Lifetime[]
  /** Per event: the storages whose memory begins with it, that it touches, and whose memory ends with it. */
  readonly bornAt: readonly (readonly Lifetime[])[]
  readonly usedAt: readonly (readonly Lifetime[])[]
  readonly diesAt: readonly (readonly Lifetime[])[]
}

/** Lays out a profile. Many plans are tried on one such step. */
export function layOutStep(profile: MemoryProfile, options: ReuseOption): ProfiledStep {
  const timeline = layOutTimeline(profile)
  const lifetimes = findLifetimes(profile, timeline, options)
  const rows = () => timeline.events.map((): Lifetime[] => [])
  const step = { timeline, lifetimes, bornAt: rows(), usedAt: rows(), diesAt: rows() }
  for (const lifetime of lifetimes) {
    step.bornAt[lifetime.from]!.push(lifetime)
    for (const use of lifetime.uses) step.usedAt[use]!.push(lifetime)
    step.diesAt[lifetime.to]!.push(lifetime)
  }
  return step
}

/** The peak of a step as it was profiled. */
export function findPeakBytes(profile: MemoryProfile): number {
  const timeline = layOutTimeline(profile)
  const lifetimes = findLifetimes(profile, timeline, { canReuse: false })
  return Math.max(...sumLiveBytes(lifetimes, timeline.events.length, profile.nonTorchBytes))
}
