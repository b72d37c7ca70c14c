import type { Lifetime } from '../step/lifetimes.js'
import type { MemoryProfile, TensorKind } from '../step/profile.js'
import type { ProfiledStep } from '../step/profiled-step.js'
import type { Timeline } from '../step/timeline.js'
import type { ExtraKind, Keep } from './plan-format.js'

/** Below this a copy costs more than it frees: in ResNet-50, 123 of 478 saved tensors hold 1.2 % of the bytes. */
export const MIN_MOVE_BYTES = 1 << 20

/** An interval in which a storage is idle and could be on the host instead. */
export interface Candidate {
  readonly lifetime: Lifetime
  readonly bytes: number
  /** The copy out may start after this event; −1: it is on the host when the step begins. */
  readonly outAfter: number
  /** The event that needs it back; the number of events: not before the step ends. */
  readonly useAt: number
  /** Copy times in microseconds; 0 if the host has a true copy already, or nothing needs to return. */
  readonly outUs: number
  readonly inUs: number
  /** Idle time minus both copies, in microseconds: the margin for queues and delays. */
  readonly slackUs: number
}

/** How long one copy takes, in microseconds. */
export function copyUs(bytes: number, gigabytesPerSecond: number, latencyUs: number): number {
  return latencyUs + bytes / (gigabytesPerSecond * 1e3)
}

/** Finds everything that could leave the device for a while, and gives the reason for everything that stays. */
export function findMovable(
  profile: MemoryProfile,
  { timeline, lifetimes }: Pick<ProfiledStep, 'timeline' | 'lifetimes'>,
  options: { readonly extras: readonly ExtraKind[]; readonly smallestBytes: number },
): { candidates: Candidate[]; keeps: Keep[] } {
  const candidates: Candidate[] = []
  const keeps: Keep[] = []
  const { d2hGBs, h2dGBs, copyLatencyUs } = profile.device
  const end = timeline.events.length
  const make = (
    lifetime: Lifetime,
    gap: { outAfter: number; useAt: number; isClean: boolean },
  ): Candidate => {
    const { outAfter, useAt } = gap
    const outUs = gap.isClean ? 0 : copyUs(lifetime.bytes, d2hGBs, copyLatencyUs)
    const inUs = useAt === end ? 0 : copyUs(lifetime.bytes, h2dGBs, copyLatencyUs)
    const slackUs = timeline.startUs[useAt]! - timeline.startUs[outAfter + 1]! - outUs - inUs
    return { lifetime, bytes: lifetime.bytes, outAfter, useAt, outUs, inUs, slackUs }
  }
  for (const lifetime of lifetimes) {
    const keep = (why: string) => keeps.push({ storage: lifetime.storage, bytes: lifetime.bytes, why })
    const { kind } = lifetime
    const isExtra = (options.extras as readonly string[]).includes(kind)
    if (kind !== 'feature' && !isExtra) {
      keep(WHY_KIND_STAYS[kind])
      continue
    }
    if (lifetime.bytes < options.smallestBytes) {
      keep(`smaller than ${options.smallestBytes} bytes: the copy costs more than the space is worth`)
      continue
    }
    if (kind === 'feature') {
      // Executors act on autograd's calls: nothing would bring back a storage that autograd saves and never asks for
      // again.
      if (lifetime.packs.length > 0 && lifetime.unpacks.length === 0) {
        keep('saved, and never asked for in backward')
        continue
      }
      const gap = findLongestGap(lifetime, timeline)
      if (!gap) keep('used again at once: it is never idle')
      else {
        const candidate = make(lifetime, { ...gap, isClean: false })
        candidates.push(candidate)
      }
    } else candidates.push(...findExtraGaps(lifetime, end).map((gap) => make(lifetime, gap)))
  }
  return { candidates, keeps }
}

const WHY_KIND_STAYS: Readonly<Record<TensorKind, string>> = {
  feature: '',
  feature_grad: 'a gradient between layers lives for one layer only',
  workspace: 'workspace of one layer',
  buffer: 'a buffer of the model or of its input, or a parameter used outside its own layer',
  param: 'a parameter, and parameters were not allowed to move (--move params)',
  param_grad: 'a parameter gradient, and gradients were not allowed to move (--move grads)',
  opt_state: 'optimizer state, and it was not allowed to move (--move optimizer)',
}

/** The longest idle time between the last forward holder and the uses of the backward pass. */
function findLongestGap(
  lifetime: Lifetime,
  timeline: Timeline,
): { outAfter: number; useAt: number } | undefined {
  const first = Math.max(lifetime.heldUntil, lifetime.uses[0] ?? 0)
  const later = lifetime.uses.filter((event) => event > first)
  let best: { outAfter: number; useAt: number } | undefined
  let bestUs = Number.NEGATIVE_INFINITY
  let outAfter = first
  for (const useAt of later) {
    const idleUs = timeline.startUs[useAt]! - timeline.startUs[outAfter + 1]!
    if (useAt > outAfter + 1 && idleUs > bestUs) {
      best = { outAfter, useAt }
      bestUs = idleUs
    }
    outAfter = useAt
  }
  return best
}

/** Idle times of a storage whose true copy is in the host mirror: parameters come per layer, gradients only leave. */
function findExtraGaps(
  lifetime: Lifetime,
  end: number,
): { outAfter: number; useAt: number; isClean: boolean }[] {
  if (lifetime.kind === 'param_grad') {
    const last = lifetime.uses.at(-1)!
    return last + 1 < end ? [{ outAfter: last, useAt: end, isClean: false }] : []
  }
  const stops = [-1, ...lifetime.uses, end]
  return stops.slice(1).flatMap((useAt, at) => {
    const outAfter = stops[at]!
    return useAt > outAfter + 1 ? [{ outAfter, useAt, isClean: true }] : []
  })
}
