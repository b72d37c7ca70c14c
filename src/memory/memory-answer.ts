import { z } from 'zod'
import { answer } from '../answers/answer.js'
import { byteCount, count, list, milliseconds } from '../answers/fields.js'
import { PREDICTED } from './plan/plan-format.js'

const way = z
  .strictObject({
    /** Names of the recomputed blocks, in order of execution. */
    recomputed: list(z.string()),
    /** Computing, recomputing and stalls. */
    stepMs: milliseconds,
    recomputeMs: milliseconds,
    stallMs: milliseconds,
    peakBytes: byteCount,
    /** Storages that leave the device and come back. */
    moves: count,
    movedBytes: byteCount,
  })
  .meta({ id: 'wayToKeep' })

const ways = {
  budgetBytes: byteCount,
  /** Everything stays: the step as it was profiled. */
  keepAll: way,
  /** Every block runs again and nothing moves, under any budget: `checkpoint()` around each block. */
  recomputeAll: way,
  /** The same, but each block's inputs move when they are saved: transformers' offloaded checkpointing. */
  recomputeAllMoveInputs: way,
  /** Only moves, as `dsc memory plan` does. */
  moveOnly: way.optional(),
  /** The mixture with the shortest predicted step. */
  best: way.optional(),
}

const parameterStatus = answer({
  mode: z.string(),
  workers: count,
  optimizer: z.enum(['sgd', 'adamw']),
  learningRate: z.number(),
  momentum: z.number().optional(),
  isNesterov: z.boolean().optional(),
  betas: z.tuple([z.number(), z.number()]).optional(),
  epsilon: z.number().optional(),
  maxNorm: z.number().optional(),
  weightDecay: z.number(),
  epoch: count,
  version: count,
  lastSteps: list(z.int()),
  waitingFor: list(count),
  parameters: count,
  elements: count,
  hasBegun: z.boolean(),
  abortReason: z.string().nullable(),
})

const predicted = z.strictObject(PREDICTED)

const recipeStep = z.strictObject({
  recipe: z.enum(['keep', 'checkpoint', 'checkpointOffload', 'saveOnCpu', 'torchtune', 'trl', 'dsc']),
  peakBytes: byteCount,
  peakAt: z.string(),
  /** Computing, recomputing, and waiting for copies. */
  stepMs: milliseconds,
  movedBytes: byteCount,
  recomputed: count,
  /** Why it does nothing, if so. */
  why: z.string().optional(),
})

/** Bytes of feature maps: saved, recomputed in backward instead, or moved (in one direction). */
const totals = z.strictObject({ keptBytes: byteCount, recomputedBytes: byteCount, movedBytes: byteCount })
const namedTotals = z.strictObject({ name: z.string(), ...totals.shape })
const planSums = {
  totals,
  modules: list(namedTotals),
  /** By line of the model's code; empty if the profile has none. */
  lines: list(namedTotals),
}
const budgetPoint = z.strictObject({ budgetBytes: byteCount, stepMs: milliseconds.optional() })
const explanation = z.strictObject({
  storage: count,
  kind: z.string(),
  /** The parameter's name, for parameters and gradients. */
  name: z.string().nullable(),
  sizeBytes: byteCount,
  /** Layer that produces it. */
  producer: z.string(),
  decision: z.enum(['moves', 'stays']),
  why: z.string(),
})
const check = z.strictObject({
  name: z.string(),
  predicted: z.number(),
  measured: z.number(),
  isFine: z.boolean(),
})

/** The answers of `dsc memory` and `dsc params`. */
export const MEMORY_ANSWERS = {
  'memory profile': answer({
    profile: z.string(),
    layers: count,
    tensors: count,
    peakBytes: byteCount,
    device: z.looseObject({ name: z.string(), d2hGBs: z.number(), h2dGBs: z.number() }),
  }),
  'memory ways': answer({ blocks: list(z.string()), ...ways }),
  'memory plan': answer({
    plan: z.string(),
    budgetBytes: byteCount,
    moves: count,
    recompute: list(z.string()),
    predicted,
    arenas: z.strictObject({
      host: z.strictObject({ sizeBytes: byteCount, liveBytes: byteCount }),
      reload: z.strictObject({
        mode: z.enum(['arena', 'slots']),
        sizeBytes: byteCount,
        liveBytes: byteCount,
      }),
    }),
  }),
  'memory explain --recipes': answer({
    budgetBytes: byteCount,
    recipes: list(recipeStep),
    best: z.string().optional(),
  }),
  'memory explain': answer({
    ...planSums,
    predicted,
    budgets: list(budgetPoint),
    tensors: list(explanation),
  }),
  'memory simulate': answer({
    capacityBytes: byteCount,
    stepMs: milliseconds,
    computeMs: milliseconds,
    stallMs: milliseconds,
    peakBytes: byteCount,
    peakAt: z.string(),
    movedBytes: byteCount,
    copies: count,
    violations: list(z.string()),
  }),
  'memory verify': answer({
    device: z.string(),
    steps: count,
    stepMs: milliseconds.nullable(),
    checks: list(check),
  }),
  'params serve': answer({ url: z.string(), mode: z.string(), epoch: count, version: count }),
  'params status': parameterStatus,
  'params set': parameterStatus,
} as const

/** The blocks that run their forward again, and the step's predicted time when the rest moves as planned. */
export type Way = z.infer<typeof way>
/** The ways to keep tensors, compared under one budget; absent: a way does not fit. */
export type ComparedWays = z.infer<z.ZodObject<typeof ways>>
/** A public recipe's step on the simulated device. */
export type SimulatedRecipe = z.infer<typeof recipeStep>
/** Bytes of feature maps by what a plan does with them. */
export type PlanTotals = z.infer<typeof totals>
/** Totals of one part of the model, or of one line of its code. */
export type NamedTotals = z.infer<typeof namedTotals>
/** Sums over the saved feature maps for the whole step, by module, and by line of code, largest first. */
export type PlanSums = z.infer<z.ZodObject<typeof planSums>>
/** The prediction for a plan of the same kind under another budget; no time if no plan fits. */
export type BudgetPoint = z.infer<typeof budgetPoint>
/** One storage and what the plan does with it, in readable form. */
export type Explanation = z.infer<typeof explanation>
/** One comparison of prediction and run. */
export type RunCheck = z.infer<typeof check>
