import { z } from 'zod'
import { byteCount as bytes, count } from '../../answers/fields.js'

const ms = z.number().nonnegative()
const way = z
  .strictObject({
    recomputed: z.array(z.string()),
    stepMs: ms,
    recomputeMs: ms,
    stallMs: ms,
    peakBytes: bytes,
    moves: count,
    movedBytes: bytes,
  })
  .meta({ id: 'wayToKeep' })

const parameterStatus = z.strictObject({
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
  lastSteps: z.array(z.int()),
  waitingFor: z.array(count),
  parameters: count,
  elements: count,
  hasBegun: z.boolean(),
  abortReason: z.string().nullable(),
})

const predicted = z.strictObject({
  peakBytes: bytes,
  peakAt: z.string(),
  unplannedPeakBytes: bytes,
  stepMs: ms,
  baseMs: ms,
  recomputeMs: ms,
  stallMs: ms,
  leastStallMs: ms,
  hostBytes: bytes,
  movedBytes: bytes,
})
const saved = { keptBytes: bytes, recomputedBytes: bytes, movedBytes: bytes }

/** What the commands of `dsc memory` and `dsc params` print with `--json`. */
export const MEMORY_ANSWERS = {
  'memory profile': z.strictObject({
    profile: z.string(),
    layers: count,
    tensors: count,
    peakBytes: bytes,
    device: z.looseObject({ name: z.string(), d2hGBs: z.number(), h2dGBs: z.number() }),
  }),
  'memory ways': z.strictObject({
    blocks: z.array(z.string()),
    budgetBytes: bytes,
    keepAll: way,
    recomputeAll: way,
    recomputeAllMoveInputs: way,
    moveOnly: way.optional(),
    best: way.optional(),
  }),
  'memory plan': z.strictObject({
    plan: z.string(),
    budgetBytes: bytes,
    moves: count,
    recompute: z.array(z.string()),
    predicted,
    arenas: z.strictObject({
      host: z.strictObject({ bytes, liveBytes: bytes }),
      reload: z.looseObject({ mode: z.enum(['arena', 'slots']), bytes }),
    }),
  }),
  'memory explain': z.strictObject({
    totals: z.strictObject(saved),
    modules: z.array(z.strictObject({ name: z.string(), ...saved })),
    lines: z.array(z.strictObject({ name: z.string(), ...saved })),
    predicted,
    budgets: z.array(z.strictObject({ budgetBytes: bytes, stepMs: ms.optional() })),
    tensors: z.array(
      z.strictObject({
        storage: count,
        kind: z.string(),
        name: z.string().nullable(),
        bytes,
        producer: z.string(),
        decision: z.enum(['moves', 'stays']),
        why: z.string(),
      }),
    ),
  }),
  'memory simulate': z.strictObject({
    capacityBytes: bytes,
    stepMs: ms,
    computeMs: ms,
    stallMs: ms,
    peakBytes: bytes,
    peakAt: z.string(),
    movedBytes: bytes,
    copies: count,
    violations: z.array(z.string()),
  }),
  'memory verify': z.strictObject({
    device: z.string(),
    steps: count,
    stepMs: ms.nullable(),
    checks: z.array(
      z.strictObject({ name: z.string(), predicted: z.number(), measured: z.number(), isFine: z.boolean() }),
    ),
  }),
  'params serve': z.strictObject({ url: z.string(), mode: z.string(), epoch: count, version: count }),
  'params status': parameterStatus,
  'params set': parameterStatus,
} as const
