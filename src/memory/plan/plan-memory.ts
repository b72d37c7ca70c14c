import { layOutArena } from './arena.js'
import { type Candidate, type ExtraKind, findCandidates, SMALLEST_MOVE_BYTES } from './candidates.js'
import { chooseMoves, emptyAsPossible, type Ranking, rankCandidates } from './choose-moves.js'
import { findLeastStallUs } from './least-stall.js'
import { type Lifetime, sumLiveBytes } from './lifetimes.js'
import { type MemoryPlan, PLAN_VERSION, type PlannedMove } from './memory-plan.js'
import type { MemoryProfile } from './profile.js'
import { layOutStep } from './profiled-step.js'
import { isReloaded, type PlacedSchedule, scheduleAndPlace } from './reload-space.js'
import { findReuse } from './reuse.js'
import { type Simulation, simulatePlan } from './simulate.js'
import { findTicks, layOutTicks, signPacks, type TickClock } from './ticks.js'
import { formatEvent, type Timeline } from './timeline.js'

/** What to plan for. */
export interface PlanRequest {
  readonly budgetBytes: number
  /** sha256 of the profile file, recorded in the plan. */
  readonly profileHash: string
  /** Kinds that may move besides feature maps; default none. */
  readonly extras?: readonly ExtraKind[] | undefined
  /** Smaller storages stay; default 1 MiB. */
  readonly smallestBytes?: number | undefined
  /** Whether the executor splits fused layers and writes feature gradients into dead maps; default false. */
  readonly canReuse?: boolean | undefined
  /** Whether reloads get memory of their own instead of one arena; default false. */
  readonly isSlotted?: boolean | undefined
  /** How late copies in were in a run, in microseconds per storage; they start that much earlier. */
  readonly latenessUs?: ReadonlyMap<number, number> | undefined
}

/** A plan, or the smallest budget for which there is one. */
export type PlanOutcome =
  | { readonly kind: 'planned'; readonly plan: MemoryPlan }
  | { readonly kind: 'infeasible'; readonly leastBytes: number; readonly at: string }

/** A stall below this share of the step is good enough: no other ranking is tried. */
const GOOD_ENOUGH = 0.002
const RANKINGS: readonly Ranking[] = ['slack', 'earliest', 'largest', 'density']
/** Shares of the budget that picks aim for: aiming lower leaves room to bring maps back early. */
const AIMS: readonly number[] = [1, 0.96, 0.9, 0.8]

/** Plans one step under a byte budget. Pure: the same profile and request give the same plan, byte for byte. */
export function planMemory(profile: MemoryProfile, request: PlanRequest): PlanOutcome {
  const extras = request.extras ?? []
  const smallestBytes = request.smallestBytes ?? SMALLEST_MOVE_BYTES
  const canReuse = request.canReuse ?? false
  const step = layOutStep(profile, canReuse)
  const { timeline, lifetimes } = step
  const clock = layOutTicks(profile, timeline)
  const liveBytes = sumLiveBytes(lifetimes, timeline.events.length, profile.nonTorchBytes)
  const { candidates, keeps } = findCandidates(profile, timeline, lifetimes, { extras, smallestBytes })
  const floor = emptyAsPossible(liveBytes, candidates)
  if (floor.highest() > request.budgetBytes) {
    const at = formatEvent(profile, timeline.events[floor.firstHighest()]!)
    return { kind: 'infeasible', leastBytes: floor.highest(), at }
  }
  const limits = {
    liveBytes,
    budgetBytes: request.budgetBytes,
    latenessUs: request.latenessUs,
    isSlotted: request.isSlotted,
  }
  const options = { move: extras, smallestBytes, reuse: canReuse }
  const best = findBest(timeline, candidates, limits, (placed, mostStallUs) => {
    const moves = placed.moves.map((move) => toPlannedMove(clock, timeline, move, placed)).sort(compareMoves)
    return simulatePlan(
      profile,
      { moves, arenas: { host: { bytes: 0, liveBytes: 0 }, reload: placed.reload }, options },
      { capacityBytes: request.budgetBytes, step, mostStallUs },
    )
  })
  const { placed, simulation } = best
  const host = layOutHost(placed)
  const moves = placed.moves
    .map((move) => ({
      ...toPlannedMove(clock, timeline, move, placed),
      hostOffset: host.offsets.get(move.lifetime.storage) ?? 0,
    }))
    .sort(compareMoves)
  const moved = new Set(moves.map(({ storage }) => storage))
  const isDeclined = moves.length === 0
  const stays = isDeclined
    ? 'everything fits: nothing needs to move'
    : 'idle long enough, but the budget is met without moving it'
  const idleKeeps = uniqueStorages(candidates)
    .filter(({ storage }) => !moved.has(storage))
    .map(({ storage, bytes }) => ({ storage, bytes, why: stays }))
  const stallUs = simulation.stallUs
  const plan: MemoryPlan = {
    v: PLAN_VERSION,
    kind: 'dsc.mem.plan',
    profile: request.profileHash,
    signature: profile.signature,
    model: profile.model,
    budgetBytes: request.budgetBytes,
    options,
    predicted: {
      peakBytes: simulation.peakBytes,
      peakAt: simulation.peakAt,
      unplannedPeakBytes: Math.max(...liveBytes),
      stepMs: toMs(simulation.stepUs),
      baseMs: toMs(timeline.startUs.at(-1)!),
      stallMs: toMs(stallUs),
      leastStallMs: toMs(
        findLeastStallUs(
          profile,
          timeline,
          { bytes: liveBytes, budgetBytes: request.budgetBytes },
          candidates,
        ),
      ),
      hostBytes: host.sizeBytes + sumHomeBytes(lifetimes, moves),
      movedBytes: simulation.movedBytes,
    },
    moves,
    keep: [...keeps, ...idleKeeps].sort((a, b) => a.storage - b.storage),
    arenas: { host: { bytes: host.sizeBytes, liveBytes: host.liveBytes }, reload: placed.reload },
    reuse: canReuse ? findReuse(profile, timeline, lifetimes) : [],
    refs: lifetimes.filter(({ refs }) => refs > 0).map(({ storage, refs }) => ({ storage, refs })),
    packSignatures: signPacks(profile),
    layerNames: profile.layers.map(({ name }) => name),
    packLayers: profile.packLayers ?? [],
    unpackCount: profile.unpackOrder?.length ?? 0,
  }
  return { kind: 'planned', plan }
}

/** Candidates tried per plan, over all attempts: keeps 10,000 tensors under a second. */
const EFFORT = 16_000

/** Tries rankings and aims in a fixed order until the stall is negligible; keeps the least stall, then bytes. */
function findBest(
  timeline: Timeline,
  candidates: readonly Candidate[],
  limits: Parameters<typeof scheduleAndPlace>[2],
  simulate: (placed: PlacedSchedule, mostStallUs: number | undefined) => Simulation,
): { placed: PlacedSchedule; simulation: Simulation } {
  let best: { placed: PlacedSchedule; simulation: Simulation } | undefined
  let triesLeft = Math.max(3, Math.floor(EFFORT / Math.max(1, candidates.length)))
  const goodUs = GOOD_ENOUGH * timeline.startUs.at(-1)!
  for (const aim of AIMS) {
    for (const ranking of RANKINGS) {
      if (triesLeft-- <= 0 && best) return best
      const ranked = rankCandidates(candidates, ranking)
      const picks = chooseMoves(limits.liveBytes, ranked, aim * limits.budgetBytes)
      if (!picks) continue
      for (const placed of scheduleAndPlace(timeline, picks, limits)) {
        const isSound = best?.simulation.violations.length === 0
        const simulation = simulate(placed, isSound ? best?.simulation.stallUs : undefined)
        if (!best || isBetter(simulation, best.simulation)) best = { placed, simulation }
        if (best.simulation.stallUs <= goodUs) break
      }
      if (best && best.simulation.stallUs <= goodUs) return best
    }
  }
  return best!
}

function isBetter(one: Simulation, other: Simulation): boolean {
  if (one.violations.length !== other.violations.length)
    return one.violations.length < other.violations.length
  return one.stallUs < other.stallUs || (one.stallUs === other.stallUs && one.movedBytes < other.movedBytes)
}

/** The order of copies out that may start at once: as their memory is needed. Simulator and executor keep it. */
function compareMoves(a: PlannedMove, b: PlannedMove): number {
  return a.outAfter - b.outAfter || a.freeBy - b.freeBy || a.storage - b.storage
}

function toPlannedMove(
  clock: TickClock,
  timeline: Timeline,
  move: PlacedSchedule['moves'][number],
  placed: PlacedSchedule,
): PlannedMove {
  const { lifetime } = move
  const isBack = isReloaded(move, timeline) && placed.reload.mode === 'arena'
  return {
    storage: lifetime.storage,
    kind: lifetime.kind,
    name: lifetime.name,
    bytes: move.bytes,
    outAfter: move.outAfter,
    freeBy: move.freeBy,
    inAt: move.inAt,
    useAt: move.useAt,
    until: Math.max(lifetime.to, lifetime.kind === 'feature' ? move.useAt : 0),
    hostOffset: 0,
    reloadOffset: isBack ? placed.reloadOffsets.get(lifetime.storage)! : null,
    outUs: round(move.outUs),
    inUs: round(move.inUs),
    slackUs: round(move.slackUs),
    refs: lifetime.refs,
    packs: lifetime.packs,
    unpacks: lifetime.unpacks,
    ticks: findTicks(clock, move),
  }
}

function layOutHost(placed: PlacedSchedule) {
  return layOutArena(
    placed.moves
      .filter(({ lifetime }) => lifetime.kind === 'feature')
      .map(({ lifetime, bytes, outAfter, useAt }) => ({
        id: lifetime.storage,
        bytes,
        from: outAfter,
        to: useAt,
      })),
  )
}

/** Where parameters or gradients move, all of them have a home on the host: the optimizer's. */
function sumHomeBytes(lifetimes: readonly Lifetime[], moves: readonly PlannedMove[]): number {
  if (moves.every(({ kind }) => kind === 'feature')) return 0
  return lifetimes
    .filter(({ kind }) => kind === 'param' || kind === 'param_grad')
    .reduce((sum, { bytes }) => sum + bytes, 0)
}

function uniqueStorages(candidates: readonly Candidate[]): Lifetime[] {
  return [...new Map(candidates.map(({ lifetime }) => [lifetime.storage, lifetime])).values()]
}

function toMs(microseconds: number): number {
  return round(microseconds / 1000)
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}
