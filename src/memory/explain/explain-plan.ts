import type { Explanation } from '../memory-answer.js'
import type { MemoryPlan } from '../plan/plan-format.js'
import { simulatePlan } from '../plan/simulate-plan.js'
import { findLifetimes, sumLiveBytes } from '../step/lifetimes.js'
import type { MemoryProfile } from '../step/profile.js'
import { layOutStep } from '../step/profiled-step.js'
import { profileOfPlan } from '../step/recompute-blocks.js'
import { formatEvent, layOutTimeline } from '../step/timeline.js'
import { drawTimeline } from './draw-timeline.js'

/** Explains for every storage of the profile why it moves or stays, largest first. */
export function explainPlan(recorded: MemoryProfile, plan: MemoryPlan): Explanation[] {
  const profile = profileOfPlan(recorded, plan)
  const timeline = layOutTimeline(profile)
  const nameOf = (event: number) => {
    const found = timeline.events[event]
    return found ? formatEvent(profile, found) : 'the end of the step'
  }
  const moves = Map.groupBy(plan.moves, ({ storage }) => storage)
  const keeps = new Map(plan.keep.map((keep) => [keep.storage, keep.why]))
  const reused = new Set(plan.reuse.map(({ storage }) => storage))
  return findLifetimes(profile, timeline, { canReuse: plan.options.reuse })
    .map(({ storage, kind, name, bytes, uses, from }): Explanation => {
      const producer = nameOf(uses[0] ?? from)
      const livesOn = reused.has(storage) ? '; then its feature gradient is written into it' : ''
      const row = { storage, kind, name, sizeBytes: bytes, producer }
      const own = moves.get(storage)
      if (own) {
        const why = own
          .map((move) => {
            const idleMs = ((move.slackUs + move.outUs + move.inUs) / 1000).toFixed(2)
            const copyMs = ((move.outUs + move.inUs) / 1000).toFixed(2)
            const gone = move.freeBy > 0 ? `gone before ${nameOf(move.freeBy)}` : 'starts on the host'
            return `idle for ${idleMs} ms, copies take ${copyMs} ms; ${gone}, back from ${nameOf(move.inAt)} for ${nameOf(move.useAt)}`
          })
          .join('; ')
        return { ...row, decision: 'moves', why: why + livesOn }
      }
      return { ...row, decision: 'stays', why: `${keeps.get(storage) ?? 'it never leaves'}${livesOn}` }
    })
    .sort((a, b) => b.sizeBytes - a.sizeBytes || a.storage - b.storage)
}

/** Draws one step: memory without a plan, with it, the budget, and the copies. */
export function drawPlan(recorded: MemoryProfile, plan: MemoryPlan): string {
  const unplanned = layOutStep(recorded, { canReuse: plan.options.reuse })
  const profile = profileOfPlan(recorded, plan)
  const step = layOutStep(profile, { canReuse: plan.options.reuse })
  const { timeline } = step
  const planned = simulatePlan(profile, plan, { capacityBytes: plan.budgetBytes, step })
  return drawTimeline({
    title: `device memory over one step: ${plan.moves.length} moves, predicted stall ${plan.predicted.stallMs.toFixed(2)} ms of ${plan.predicted.stepMs.toFixed(2)} ms`,
    unplannedBytes: sumLiveBytes(unplanned.lifetimes, timeline.events.length, profile.nonTorchBytes),
    plannedBytes: planned.bytesPerEvent,
    startUs: planned.startUs,
    budgetBytes: plan.budgetBytes,
    forwardCount: timeline.forwardCount,
    copies: planned.copyTimes.map(({ direction, storage, bytes, fromUs, toUs }) => {
      const label = `storage ${storage}, ${(bytes / 2 ** 20).toFixed(1)} MiB, ${((toUs - fromUs) / 1000).toFixed(2)} ms`
      return { direction, fromUs, toUs, label }
    }),
  })
}
