import type { Lifetime } from './lifetimes.js'
import type { MemoryProfile } from './profile.js'
import type { Timeline } from './timeline.js'

/** A feature gradient that may be written into a feature map's space (seed 002, S6). */
export interface Reuse {
  /** Storage of the feature gradient, and of the map whose space it takes. */
  readonly gradient: number
  readonly map: number
  readonly layer: number
  readonly bytes: number
}

/**
 * Pairs each feature gradient with a map that dies just before it: the map's last use is the layer's parameter
 * gradient (its count is 0 after it), and the gradient fits. The smallest fitting map wins, each is given once.
 * `lifetimes` are those with reuse on, where a fused layer's map ends at its parameter gradient.
 */
export function findReuse(
  profile: MemoryProfile,
  timeline: Timeline,
  lifetimes: readonly Lifetime[],
): Reuse[] {
  const dyingAt = new Map<number, Lifetime[]>()
  for (const lifetime of lifetimes) {
    if (lifetime.kind !== 'feature' || timeline.events[lifetime.to]?.phase !== 'bwd_param') continue
    if (lifetime.uses.at(-1) !== lifetime.to) continue // held on by something that is no use
    const group = dyingAt.get(lifetime.to)
    if (group) group.push(lifetime)
    else dyingAt.set(lifetime.to, [lifetime])
  }
  const reuse: Reuse[] = []
  const isGiven = new Set<number>()
  const gradients = lifetimes.filter(({ kind }) => kind === 'feature_grad')
  for (const gradient of gradients.toSorted((a, b) => b.bytes - a.bytes || a.storage - b.storage)) {
    const born = timeline.events[gradient.from]
    if (born?.phase !== 'bwd_feat') continue
    const map = (dyingAt.get(gradient.from - 1) ?? [])
      .filter(({ storage, bytes }) => !isGiven.has(storage) && bytes >= gradient.bytes)
      .sort((a, b) => a.bytes - b.bytes || a.storage - b.storage)[0]
    if (!map) continue
    isGiven.add(map.storage)
    reuse.push({
      gradient: gradient.storage,
      map: map.storage,
      layer: profile.layers.find(({ i }) => i === born.layer)!.i,
      bytes: gradient.bytes,
    })
  }
  return reuse.sort((a, b) => a.layer - b.layer || a.gradient - b.gradient)
}
