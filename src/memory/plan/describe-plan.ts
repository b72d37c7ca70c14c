import type { Block } from '../step/find-blocks.js'
import type { Lifetime } from '../step/lifetimes.js'
import type { MemoryProfile } from '../step/profile.js'
import { findPeakBytes, type ProfiledStep } from '../step/profiled-step.js'
import { layOutArena } from './arena.js'
import type { Candidate } from './candidates.js'
import { findLeastStallUs } from './least-stall.js'
import {
  type Keep,
  type MemoryPlan,
  PLAN_VERSION,
  type PlannedMove,
  type PlannedRecomputation,
  type Prediction,
  type Reuse,
} from './plan-format.js'
import { isReloaded, type PlacedSchedule } from './reload-space.js'
import type { ScheduleLimits } from './schedule.js'
import type { Simulation } from './simulate-plan.js'
import { findTicks, signPacks, type TickClock } from './ticks.js'

/** The planning problem: a step, the storages that may leave it for a while, and the memory limits. */
export interface PlanProblem extends Omit<ScheduleLimits, 'aimBytes'> {
  readonly profile: MemoryProfile
  /** sha256 of the profile file. */
  readonly profileHash: string
  readonly options: MemoryPlan['options']
  readonly step: ProfiledStep
  readonly clock: TickClock
  readonly candidates: readonly Candidate[]
  /** Blocks that run again: `profile` and `step` already include that. */
  readonly recompute: readonly Block[]
  readonly recomputeUs: number
  /** The step when nothing moves or runs again. */
  readonly recorded: MemoryProfile
  /** Storages that must stay, and why. */
  readonly keeps: readonly Keep[]
}

/** A schedule, and its result on the simulated device. */
export interface PlanAttempt {
  readonly placed: PlacedSchedule
  readonly simulation: Simulation
}

/** Turns an attempt into a plan. */
export function describePlan(problem: PlanProblem, { placed, simulation }: PlanAttempt): MemoryPlan {
  const { profile, options, step, keeps } = problem
  const host = layOutHost(placed)
  const moves = describeMoves(problem, placed).map((move) => ({
    ...move,
    hostOffset: host.offsets.get(move.storage) ?? 0,
  }))
  const hostBytes = host.sizeBytes + sumHomeBytes(step.lifetimes, moves)
  return {
    v: PLAN_VERSION,
    kind: 'dsc.mem.plan',
    profile: problem.profileHash,
    signature: profile.signature,
    model: profile.model,
    budgetBytes: problem.budgetBytes,
    options,
    predicted: predict(problem, simulation, hostBytes),
    recompute: problem.recompute.map(describeRecomputation),
    moves,
    keep: [...keeps, ...findIdleKeeps(problem, moves)].sort((a, b) => a.storage - b.storage),
    arenas: { host: { bytes: host.sizeBytes, liveBytes: host.liveBytes }, reload: placed.reload },
    reuse: options.reuse ? listReuse(profile) : [],
    refs: step.lifetimes.filter(({ refs }) => refs > 0).map(({ storage, refs }) => ({ storage, refs })),
    packSignatures: signPacks(profile),
    layerNames: profile.layers.map(({ name }) => name),
    packLayers: profile.packLayers ?? [],
    unpackCount: profile.unpackOrder?.length ?? 0,
  }
}

/** The moves of a schedule, in the order of a plan; their places on the host are not yet known. */
export function describeMoves(problem: PlanProblem, placed: PlacedSchedule): PlannedMove[] {
  return placed.moves.map((move) => describeMove(problem, placed, move)).sort(compareMoves)
}

function predict(problem: PlanProblem, simulation: Simulation, hostBytes: number): Prediction {
  return {
    peakBytes: simulation.peakBytes,
    peakAt: simulation.peakAt,
    unplannedPeakBytes: findPeakBytes(problem.recorded),
    stepMs: toMs(simulation.stepUs),
    baseMs: toMs(problem.step.timeline.startUs.at(-1)!),
    recomputeMs: toMs(problem.recomputeUs),
    stallMs: toMs(simulation.stallUs),
    leastStallMs: toMs(findLeastStallUs(problem)),
    hostBytes,
    movedBytes: simulation.movedBytes,
  }
}

/** The reuse recorded in a profile, in the order of its pack calls. */
function listReuse({ reuse, packLayers = [] }: MemoryProfile): Reuse[] {
  return (reuse?.packs ?? []).map((pack) => {
    const { storage, bytes } = reuse!.tensors.find((tensor) => tensor.pack.includes(pack))!
    return { pack, layer: packLayers[pack]!, storage, bytes }
  })
}

function describeRecomputation({ name, recorded }: Block): PlannedRecomputation {
  const { call = 0, inputs = [], buffers = [] } = recorded ?? {}
  return { name, call, inputs: inputs.length, buffers }
}

/** Storages that could move but do not. */
function findIdleKeeps({ candidates }: PlanProblem, moves: readonly PlannedMove[]): Keep[] {
  const moved = new Set(moves.map(({ storage }) => storage))
  const why =
    moves.length === 0
      ? 'everything fits: nothing needs to move'
      : 'idle long enough, but the budget is met without moving it'
  const storages = new Map(candidates.map(({ lifetime }) => [lifetime.storage, lifetime]))
  return [...storages.values()]
    .filter(({ storage }) => !moved.has(storage))
    .map(({ storage, bytes }) => ({ storage, bytes, why }))
}

/** Order of copies out that may start at once: by when their memory is needed. Simulator and executor keep it. */
function compareMoves(a: PlannedMove, b: PlannedMove): number {
  return a.outAfter - b.outAfter || a.freeBy - b.freeBy || a.storage - b.storage
}

function describeMove(
  { clock, step }: PlanProblem,
  placed: PlacedSchedule,
  move: PlacedSchedule['moves'][number],
): PlannedMove {
  const { lifetime } = move
  const isBack = isReloaded(move, step.timeline) && placed.reload.mode === 'arena'
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

/** If parameters or gradients move, all of them have a home on the host: the optimizer's. */
function sumHomeBytes(lifetimes: readonly Lifetime[], moves: readonly PlannedMove[]): number {
  if (moves.every(({ kind }) => kind === 'feature')) return 0
  return lifetimes
    .filter(({ kind }) => kind === 'param' || kind === 'param_grad')
    .reduce((sum, { bytes }) => sum + bytes, 0)
}

function toMs(microseconds: number): number {
  return round(microseconds / 1000)
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}
