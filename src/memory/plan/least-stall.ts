import type { Candidate } from './candidates.js'
import type { MemoryProfile } from './profile.js'
import type { Timeline } from './timeline.js'

/**
 * A stall no plan of this budget can avoid, in microseconds: what exceeds the budget at an event must have left
 * through the queue out since the first candidate existed, and come back through the queue in before the last use.
 */
export function findLeastStallUs(
  profile: MemoryProfile,
  timeline: Timeline,
  live: { readonly bytes: readonly number[]; readonly budgetBytes: number },
  candidates: readonly Candidate[],
): number {
  const copied = candidates.filter(({ outUs }) => outUs > 0)
  if (copied.length === 0) return 0
  const free = candidates.filter(({ outUs }) => outUs === 0)
  const firstOutUs = timeline.startUs[Math.min(...copied.map(({ outAfter }) => outAfter)) + 1]!
  const lastUseUs = timeline.startUs[Math.max(...copied.map(({ useAt }) => useAt))]!
  const { d2hGBs, h2dGBs } = profile.device
  const withoutFree = live.bytes.slice()
  for (const { outAfter, useAt, bytes } of free)
    for (let event = outAfter + 1; event < useAt; event++) withoutFree[event]! -= bytes
  let worstUs = 0
  withoutFree.forEach((bytes, event) => {
    const excess = bytes - live.budgetBytes
    if (excess <= 0) return
    const startUs = timeline.startUs[event]!
    const returns = copied.every(({ inUs }) => inUs > 0)
    const outUs = excess / (d2hGBs * 1e3) - (startUs - firstOutUs)
    const endUs = timeline.startUs[event + 1]!
    const inUs = returns ? excess / (h2dGBs * 1e3) - (lastUseUs - endUs) : 0
    worstUs = Math.max(worstUs, Math.max(0, outUs) + Math.max(0, inUs))
  })
  return worstUs
}
