import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { byteCount, count, list, milliseconds } from '../../answers/fields.js'

const way = z
  .strictObject({
    recomputed: list(z.string()),
    stepMs: milliseconds,
    recomputeMs: milliseconds,
    stallMs: milliseconds,
    peakBytes: byteCount,
    moves: count,
    movedBytes: byteCount,
  })
  .meta({ id: 'wayToKeep' })

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

const predicted = z.strictObject({
  peakBytes: byteCount,
  peakAt: z.string(),
  unplannedPeakBytes: byteCount,
  stepMs: milliseconds,
  baseMs: milliseconds,
  recomputeMs: milliseconds,
  stallMs: milliseconds,
  leastStallMs: milliseconds,
  hostBytes: byteCount,
  movedBytes: byteCount,
})
const saved = { keptBytes: byteCount, recomputedBytes: byteCount, movedBytes: byteCount }

/** The answers of `dsc memory` and `dsc params`. */
export const MEMORY_ANSWERS = {
  'memory profile': answer({
    profile: z.string(),
    layers: count,
    tensors: count,
    peakBytes: byteCount,
    device: z.looseObject({ name: z.string(), d2hGBs: z.number(), h2dGBs: z.number() }),
  }),
  'memory ways': answer({
    blocks: list(z.string()),
    budgetBytes: byteCount,
    keepAll: way,
    recomputeAll: way,
    recomputeAllMoveInputs: way,
    moveOnly: way.optional(),
    best: way.optional(),
  }),
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
    recipes: list(
      z.strictObject({
        recipe: z.enum(['keep', 'checkpoint', 'checkpointOffload', 'saveOnCpu', 'torchtune', 'trl', 'dsc']),
        peakBytes: byteCount,
        peakAt: z.string(),
        stepMs: milliseconds,
        movedBytes: byteCount,
        recomputed: count,
        why: z.string().optional(),
      }),
    ),
    best: z.string().optional(),
  }),
  'memory explain': answer({
    totals: z.strictObject(saved),
    modules: list(z.strictObject({ name: z.string(), ...saved })),
    lines: list(z.strictObject({ name: z.string(), ...saved })),
    predicted,
    budgets: list(z.strictObject({ budgetBytes: byteCount, stepMs: milliseconds.optional() })),
    tensors: list(
      z.strictObject({
        storage: count,
        kind: z.string(),
        name: z.string().nullable(),
        sizeBytes: byteCount,
        producer: z.string(),
        decision: z.enum(['moves', 'stays']),
        why: z.string(),
      }),
    ),
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
    checks: list(
      z.strictObject({ name: z.string(), predicted: z.number(), measured: z.number(), isFine: z.boolean() }),
    ),
  }),
  'params serve': answer({ url: z.string(), mode: z.string(), epoch: count, version: count }),
  'params status': parameterStatus,
  'params set': parameterStatus,
} as const

export type MemoryProfileAnswer = z.infer<(typeof MEMORY_ANSWERS)['memory profile']>
export type MemoryWaysAnswer = z.infer<(typeof MEMORY_ANSWERS)['memory ways']>
export type MemoryPlanAnswer = z.infer<(typeof MEMORY_ANSWERS)['memory plan']>
export type MemoryExplainAnswer = z.infer<(typeof MEMORY_ANSWERS)['memory explain']>
export type MemoryRecipesAnswer = z.infer<(typeof MEMORY_ANSWERS)['memory explain --recipes']>
export type MemorySimulateAnswer = z.infer<(typeof MEMORY_ANSWERS)['memory simulate']>
export type MemoryVerifyAnswer = z.infer<(typeof MEMORY_ANSWERS)['memory verify']>
export type ParamsServeAnswer = z.infer<(typeof MEMORY_ANSWERS)['params serve']>
export type ParameterStatusAnswer = z.infer<typeof parameterStatus>
