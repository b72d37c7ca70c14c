import { findLifetimes, sumLiveBytes } from '../step/lifetimes.js'
import type { MemoryProfile, ProfiledTensor, StepPlace } from '../step/profile.js'
import { layOutTimeline } from '../step/timeline.js'
import { moveMaps } from './offload-rules.js'
import {
  findFirstAsk,
  makeCopy,
  type Rewriting,
  rewrite,
  wholeBackward,
  wholeForward,
} from './rewrite-step.js'
import { listSaveCalls } from './save-calls.js'

/**
 * Corrects what each layer takes besides saved tensors. A layer of several operations has its fullest instant elsewhere
 * once its maps have left. What it then took was recorded without any maps.
 */
export function correctWorkspace(
  profile: MemoryProfile,
  tensors: readonly ProfiledTensor[],
): readonly ProfiledTensor[] {
  const missing = measureMissing(profile)
  let storage = tensors.reduce((most, one) => Math.max(most, one.storage), -1)
  const corrected = tensors.map((tensor) => {
    const { kind, alive, bytes } = tensor
    const excess = alive && alive[0].layer === alive[1].layer ? -(missing.get(keyOf(alive[0])) ?? 0) : 0
    const canShrink = kind === 'workspace' || kind === 'feature'
    const less = canShrink && excess > 0 ? Math.min(bytes, excess) : 0
    if (less > 0) missing.set(keyOf(alive![0]), less - excess)
    return less > 0 ? { ...tensor, bytes: bytes - less } : tensor
  })
  const added = [...missing].map(([key, bytes]) => {
    const [layer, phase] = key.split(' ')
    const span = phase === 'fwd' ? wholeForward(Number(layer)) : wholeBackward(Number(layer))
    return makeCopy(++storage, Math.max(0, bytes), span)
  })
  return [...corrected, ...added]
}

function keyOf({ layer, phase }: StepPlace): string {
  return `${layer} ${phase}`
}

/** For each forward and backward, how much more or less it took without maps than a rewritten step says. */
function measureMissing(profile: MemoryProfile): Map<string, number> {
  const missing = new Map<string, number>()
  if (profile.layers.every(({ leastBytes }) => leastBytes === undefined)) return missing
  const calls = listSaveCalls(profile).map((call) => ({ ...call, bytes: call.tensor.bytes })) // whole storages
  const moved = moveMaps(calls)
  const step: Rewriting = { timeline: layOutTimeline(profile), calls, moved, firstAsk: findFirstAsk(moved) }
  const live = sumLiveBytes(
    findLifetimes({ ...profile, tensors: rewrite(profile, step) }, step.timeline, { canReuse: false }),
    step.timeline.events.length,
    0,
  )
  for (const { i, leastBytes } of profile.layers)
    for (const [at, phase] of (['fwd', 'bwd_param'] as const).entries()) {
      const place = { layer: i, phase }
      const bytes = leastBytes?.[at] ?? 0
      if (bytes > 0) missing.set(keyOf(place), bytes - live[step.timeline.indexOf(place)]!)
    }
  return missing
}
