import type { SimulatedRecipe } from '../memory-answer.js'
import type { MemoryPlan } from '../plan/plan-format.js'
import { type SimulatedPlan, simulatePlan } from '../plan/simulate-plan.js'
import { findBlocks } from '../step/find-blocks.js'
import type { MemoryProfile } from '../step/profile.js'
import { recomputeBlocks } from '../step/recompute-blocks.js'
import { renumberPacks } from '../step/renumber-packs.js'
import { planWays } from '../ways/choose-ways.js'
import { offloadCalls } from './offload-calls.js'
import {
  type OffloadRule,
  offloadAsTorchtune,
  offloadAsTrl,
  offloadInputs,
  saveOnCpu,
} from './offload-rules.js'

/** A public recipe, by the name that `--json` has. */
export type RecipeName = SimulatedRecipe['recipe']

/** A recipe's step on the simulated device. */
export interface RecipeStep extends SimulatedRecipe {
  /** How much lower the peak is than with everything kept; below 0: it is higher. */
  readonly freedBytes: number
}

/** The recipes in order of simplicity, and the best under the budget: the shortest step among those that fit. */
export interface RecipeComparison {
  readonly budgetBytes: number
  readonly steps: readonly RecipeStep[]
  /** Undefined if none fits. */
  readonly best: RecipeName | undefined
}

/** A recipe is as good as a simpler one if it saves no more of the step than this: predictions are no more exact. */
const AS_GOOD = 1.02

/** Predicts peak and step of the public recipes, and of dsc's plan under `budgetBytes`, for a recorded step. Pure. */
export function compareRecipes(
  profile: MemoryProfile,
  {
    budgetBytes,
    smallestBytes,
  }: { readonly budgetBytes: number; readonly smallestBytes?: number | undefined },
): RecipeComparison {
  const blocks = findBlocks(profile)
  const again = recomputeBlocks(profile, blocks)
  const inputs = new Set(renumberPacks(profile, blocks, () => 0).inputs.flatMap(({ pack }) => pack))
  const keep = simulate('keep', profile, 0)
  const all = [
    keep,
    { ...simulate('checkpoint', again, 0), recomputed: blocks.length },
    { ...simulateOffload('checkpointOffload', again, offloadInputs(inputs)), recomputed: blocks.length },
    simulateOffload('saveOnCpu', profile, saveOnCpu),
    simulateOffload('torchtune', profile, offloadAsTorchtune),
    simulateOffload('trl', profile, offloadAsTrl),
    ...simulateDsc(profile, { budgetBytes, smallestBytes }),
  ]
  const obstacle = blocks.length === 0 ? describeObstacle(profile) : undefined
  const steps = all.map((step): RecipeStep => {
    const freedBytes = keep.peakBytes - step.peakBytes
    return { ...step, freedBytes, why: explainIdle(step, { freedBytes, obstacle }) }
  })
  return { budgetBytes, steps, best: chooseRecipe(steps, budgetBytes) }
}

/** The first recipe whose step is nearly as short as the shortest among those that fit. */
export function chooseRecipe(
  steps: readonly Pick<RecipeStep, 'recipe' | 'peakBytes' | 'stepMs'>[],
  budgetBytes: number,
): RecipeName | undefined {
  const fitting = steps.filter(({ peakBytes }) => peakBytes <= budgetBytes)
  const shortest = fitting.reduce((least, { stepMs }) => Math.min(least, stepMs), Number.POSITIVE_INFINITY)
  return fitting.find(({ stepMs }) => stepMs <= AS_GOOD * shortest)?.recipe
}

/**
 * Time that each tool's hooks need on a CPU, per tensor that autograd saves and per tensor that moves. The unit is the
 * profile's `hookUs`. Fitted, to within a third, to steps of the models that scripts/bench/memory/compare_recipes.py
 * compares, on one thread: what it finds is no independent test.
 */
const HOOKS = {
  saveOnCpu: { saved: 0, moved: 0.7 },
  checkpointOffload: { saved: 0, moved: 0.7 },
  torchtune: { saved: 1, moved: 2.7 },
  trl: { saved: 1.5, moved: 3 },
  dsc: { saved: 3, moved: 10 },
}

/** The same per block that dsc recomputes beside blocks that it keeps, on top of the cost of `checkpoint()`. */
const AGAIN_HOOKS = 40

type Simulated = Omit<RecipeStep, 'freedBytes' | 'why'>

const NO_MOVES: SimulatedPlan = {
  moves: [],
  arenas: { host: { bytes: 0, liveBytes: 0 }, reload: { mode: 'slots', bytes: 0, liveBytes: 0 } },
  options: { move: [], smallestBytes: 0, reuse: false },
}

function simulate(recipe: RecipeName, profile: MemoryProfile, movedBytes: number): Simulated {
  const run = simulatePlan(profile, NO_MOVES, { capacityBytes: Number.MAX_SAFE_INTEGER })
  const { peakBytes, peakAt, stepUs } = run
  return { recipe, peakBytes, peakAt, stepMs: stepUs / 1000, movedBytes, recomputed: 0 }
}

function simulateOffload(recipe: keyof typeof HOOKS, profile: MemoryProfile, rule: OffloadRule): Simulated {
  const { moved, movedBytes, profile: rewritten } = offloadCalls(profile, rule)
  const step = simulate(recipe, rewritten, movedBytes)
  return { ...step, stepMs: step.stepMs + sumHookMs(recipe, profile, moved.length) }
}

function sumHookMs(recipe: keyof typeof HOOKS, profile: MemoryProfile, moved: number): number {
  const { device, packLayers = [] } = profile
  const hooks = HOOKS[recipe].saved * packLayers.length + HOOKS[recipe].moved * moved
  return ((device.hookUs ?? 0) * hooks) / 1000
}

/** dsc's plan: under the budget, or, where none fits, nothing. */
function simulateDsc(
  profile: MemoryProfile,
  request: { readonly budgetBytes: number; readonly smallestBytes?: number | undefined },
): Simulated[] {
  const outcome = planWays(profile, request)
  if (outcome.kind === 'infeasible') return []
  const { predicted, recompute }: MemoryPlan = outcome.plan
  const { peakBytes, peakAt, movedBytes } = predicted
  const stepMs = predicted.stepMs + sumHostMs(profile, outcome.plan)
  return [{ recipe: 'dsc', peakBytes, peakAt, stepMs, movedBytes, recomputed: recompute.length }]
}

/** A plan's copies and hooks where they take time of the processor that computes, instead of stalls. */
function sumHostMs(profile: MemoryProfile, { predicted, moves, recompute }: MemoryPlan): number {
  const { hookUs, d2hGBs } = profile.device
  if (hookUs === undefined) return 0
  const againMs = (hookUs * AGAIN_HOOKS * recompute.length) / 1000
  if (moves.length === 0) return againMs
  const copiesMs = predicted.movedBytes / (d2hGBs * 1e6)
  return againMs + copiesMs + sumHookMs('dsc', profile, moves.length) - predicted.stallMs
}

function explainIdle(
  { recipe, peakAt, movedBytes, recomputed }: Simulated,
  { freedBytes, obstacle }: { readonly freedBytes: number; readonly obstacle: string | undefined },
): string | undefined {
  if (recipe === 'keep' || freedBytes > 0) return undefined
  if (recipe === 'dsc')
    return movedBytes === 0 && recomputed === 0 ? 'everything fits: nothing needs to move' : undefined
  if (recipe === 'checkpoint' || recipe === 'checkpointOffload') {
    if (obstacle) return obstacle
    if (recipe === 'checkpointOffload' && movedBytes === 0) return 'no block saves an input'
  } else if (movedBytes === 0) return 'autograd saves no tensor that it would move'
  return `the peak is at ${peakAt}, which needs as much`
}

/** Why no block runs again: the first one says it. */
function describeObstacle({ blocks = [] }: MemoryProfile): string {
  const found = blocks.find(({ obstacle }) => obstacle !== undefined)
  return found ? `${found.name} cannot run again: it ${found.obstacle}` : 'no part of the model can run again'
}
