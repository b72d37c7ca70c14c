import type { Block } from '../step/find-blocks.js'
import { sumLiveBytes } from '../step/lifetimes.js'
import type { MemoryProfile } from '../step/profile.js'
import { layOutStep } from '../step/profiled-step.js'
import { recomputeBlocks, sumForwardUs } from '../step/recompute-blocks.js'
import { formatEvent } from '../step/timeline.js'
import { findMovable, MIN_MOVE_BYTES } from './candidates.js'
import { chooseMoves, emptyAsPossible, type Ranking, rankCandidates } from './choose-moves.js'
import { describeMoves, describePlan, type PlanAttempt, type PlanProblem } from './describe-plan.js'
import type { ExtraKind, MemoryPlan } from './plan-format.js'
import { type PlacedSchedule, scheduleAndPlace } from './reload-space.js'
import { type Simulation, simulatePlan } from './simulate-plan.js'
import { layOutTicks } from './ticks.js'

/** Options for planning. */
export interface PlanRequest {
  readonly budgetBytes: number
  /** sha256 of the profile file, recorded in the plan. */
  readonly profileHash: string
  /** Kinds that may move besides feature maps; default none. */
  readonly extras?: readonly ExtraKind[] | undefined
  /** Smaller storages stay; default 1 MiB. */
  readonly smallestBytes?: number | undefined
  /** Whether feature gradients are written into dead maps, if the profile recorded that; default false. */
  readonly canReuse?: boolean | undefined
  /** Whether each reload gets memory of its own instead of one arena; default false. */
  readonly isSlotted?: boolean | undefined
  /** Blocks that run again instead of saving, from `findBlocks` or `listCalls`, none inside another; default none. */
  readonly recompute?: readonly Block[] | undefined
  /** How late copies in were during a run, in microseconds per storage; they start that much earlier. */
  readonly latenessUs?: ReadonlyMap<number, number> | undefined
}

/** A plan, or the smallest budget for which one exists. */
export type PlanOutcome =
  | { readonly kind: 'planned'; readonly plan: MemoryPlan }
  | {
      readonly kind: 'infeasible'
      readonly leastBytes: number
      /** The event that needs them. */
      readonly at: string
      readonly leftOut: UnmovedStorages
    }

/** Storages that `smallestBytes` keeps on the device at the fullest event though they are idle there. */
export interface UnmovedStorages {
  readonly storages: number
  readonly bytes: number
  /** The smallest budget for which a plan exists that moves them, too. */
  readonly leastBytes: number
}

/** A stall below this share of the step is good enough: no other ranking is tried. */
const GOOD_ENOUGH = 0.002
const RANKINGS: readonly Ranking[] = ['slack', 'earliest', 'largest', 'density']
/** Shares of the budget that picks and copies out aim for: aiming lower leaves room to bring others back early. */
const AIMS: readonly number[] = [1, 0.96, 0.9, 0.8]

/** Plans one step under a byte budget. Pure: the same profile and request give the same plan, byte for byte. */
export function planMemory(profile: MemoryProfile, request: PlanRequest): PlanOutcome {
  const problem = layOutProblem(profile, request)
  const floor = emptyAsPossible(problem.liveBytes, problem.candidates)
  if (floor.highest() > request.budgetBytes) {
    const event = floor.firstHighest()
    const at = formatEvent(profile, problem.step.timeline.events[event]!)
    return { kind: 'infeasible', leastBytes: floor.highest(), at, leftOut: findLeftOut(problem, event) }
  }
  return { kind: 'planned', plan: describePlan(problem, findBest(problem)) }
}

/**
 * The result of a step under the first plans that would be tried, or undefined if none fits. Faster than `planMemory`.
 */
export function estimatePlan(profile: MemoryProfile, request: PlanRequest): Simulation | undefined {
  const problem = { ...layOutProblem(profile, request), isSlotted: true } // arenas take long to lay out
  if (emptyAsPossible(problem.liveBytes, problem.candidates).highest() > request.budgetBytes) return undefined
  const { simulation } = findBest(problem, FEW_TRIES)
  return simulation.peakBytes <= request.budgetBytes ? simulation : undefined
}

function findLeftOut({ profile, step, options, liveBytes }: PlanProblem, event: number): UnmovedStorages {
  const { candidates } = findMovable(profile, step, { extras: options.move, smallestBytes: 0 })
  const small = candidates.filter(
    ({ bytes, outAfter, useAt }) => bytes < options.smallestBytes && outAfter < event && event < useAt,
  )
  return {
    storages: small.length,
    bytes: small.reduce((sum, { bytes }) => sum + bytes, 0),
    leastBytes: emptyAsPossible(liveBytes, candidates).highest(),
  }
}

function layOutProblem(recorded: MemoryProfile, request: PlanRequest): PlanProblem {
  const { extras = [], smallestBytes = MIN_MOVE_BYTES, canReuse = false, recompute = [] } = request
  const profile = recomputeBlocks(recorded, recompute)
  const step = layOutStep(profile, { canReuse })
  const { timeline, lifetimes } = step
  const { candidates, keeps } = findMovable(profile, step, { extras, smallestBytes })
  return {
    profile,
    profileHash: request.profileHash,
    options: { move: extras, smallestBytes, reuse: canReuse },
    step,
    clock: layOutTicks(profile, timeline),
    liveBytes: sumLiveBytes(lifetimes, timeline.events.length, profile.nonTorchBytes),
    budgetBytes: request.budgetBytes,
    latenessUs: request.latenessUs,
    // A storage that comes back may live on as a gradient: longer than an arena could keep its place.
    isSlotted: request.isSlotted || canReuse || candidates.some(({ lifetime }) => lifetime.livesOn),
    recompute,
    recomputeUs: recompute.reduce((sum, block) => sum + sumForwardUs(recorded, block), 0),
    recorded,
    candidates,
    keeps,
  }
}

/** Candidates tried per plan, over all attempts: keeps 10,000 tensors under a second. */
const EFFORT = 16_000

/** Rankings tried for an estimate. */
const FEW_TRIES = 2

/** Tries rankings and aims in a fixed order until the stall is negligible; keeps the least stall, then bytes. */
function findBest(problem: PlanProblem, mostTries = Number.POSITIVE_INFINITY): PlanAttempt {
  const { candidates, liveBytes, budgetBytes, step } = problem
  let best: PlanAttempt | undefined
  let triesLeft = Math.min(mostTries, Math.max(3, Math.floor(EFFORT / Math.max(1, candidates.length))))
  const goodUs = GOOD_ENOUGH * step.timeline.startUs.at(-1)!
  for (const aim of AIMS) {
    for (const ranking of RANKINGS) {
      if (triesLeft-- <= 0 && best) return best
      const aimBytes = aim * budgetBytes
      const picks = chooseMoves(liveBytes, rankCandidates(candidates, ranking), aimBytes)
      if (!picks) continue
      for (const placed of scheduleAndPlace(step.timeline, picks, { ...problem, aimBytes })) {
        const isSound = best?.simulation.violations.length === 0
        const simulation = simulate(problem, placed, isSound ? best?.simulation.stallUs : undefined)
        if (!best || isBetter(simulation, best.simulation)) best = { placed, simulation }
        if (best.simulation.stallUs <= goodUs) break
      }
      if (best && best.simulation.stallUs <= goodUs) return best
    }
  }
  return best!
}

function simulate(problem: PlanProblem, placed: PlacedSchedule, maxStallUs: number | undefined): Simulation {
  const { profile, options, step, budgetBytes: capacityBytes } = problem
  const moves = describeMoves(problem, placed)
  const arenas = { host: { bytes: 0, liveBytes: 0 }, reload: placed.reload }
  return simulatePlan(profile, { moves, arenas, options }, { capacityBytes, step, maxStallUs })
}

function isBetter(one: Simulation, other: Simulation): boolean {
  if (one.violations.length !== other.violations.length)
    return one.violations.length < other.violations.length
  return one.stallUs < other.stallUs || (one.stallUs === other.stallUs && one.movedBytes < other.movedBytes)
}
