import { z } from 'zod'
import { answer } from '../answers/answer.js'
import { byteCount, bytesPerSecond, count, list, microseconds, milliseconds } from '../answers/fields.js'
import { WIRE_TYPES } from './plan/wire-type.js'

const wire = z.enum(WIRE_TYPES)

const thinLink = z.strictObject({
  /** Share of a step in which ranks compute, 0–1, if every value took one bit on the wire and converting were free. */
  bestSyncShare: z.number(),
  /** Such a step, and one with halves as dsc sends them. */
  oneBitStepMs: milliseconds,
  halfStepMs: milliseconds,
  /** Local steps of every rank between two exchanges, so that exchanging takes a tenth of the time. */
  localSteps: count,
  /** A step then, on average. */
  localStepMs: milliseconds,
  explanation: z.string(),
})

const unitAlternative = z.strictObject({
  name: z.string(),
  units: count,
  /** Number of units whose parameters are gathered ahead of the one that computes. */
  prefetch: count,
  stepMs: milliseconds,
  /** Of the step without computation. */
  exposedMs: z.number().meta({ unit: 'milliseconds' }),
  /** Most bytes of gathered parameters on the device at once. */
  gatheredBytes: byteCount,
})

/** Neighboring blocks that FSDP2 gathers and reduces together, with one `fully_shard`; modules are in the order of the forward. */
const shardedUnit = z.strictObject({ modules: list(z.string()), elements: count })
const unitPlan = z.strictObject({
  units: list(shardedUnit),
  chosen: unitAlternative,
  alternatives: list(unitAlternative),
})

const benchRow = z.strictObject({
  /** fp32 bytes of the gradients. */
  messageBytes: byteCount,
  /** Of a whole step: fill, exchange, commit. */
  medianMs: milliseconds,
  /** Resulting fp32 bytes. */
  bytesPerSecond,
})

/** The answers of `dsc exchange`; `plan` and `probe` write the same to `--out`, without `dsc`. */
export const EXCHANGE_ANSWERS = {
  'exchange plan': answer({
    format: z.literal('dsc.exchange.plan/1'),
    hash: z.string(),
    model: z.string(),
    ranks: count,
    wire,
    wireExplanation: z.string(),
    levels: z.literal([1, 2]),
    levelsExplanation: z.string().nullable(),
    thinLink: thinLink.nullable(),
    sharded: unitPlan.nullable(),
    backwardMs: list(milliseconds),
    unlikeRanks: z.string().nullable(),
    bucketRule: z.string(),
    link: z.strictObject({ alphaMicroseconds: microseconds, bandwidthBytesPerSecond: bytesPerSecond }),
    threshold: z.strictObject({
      wireBytes: byteCount,
      layers: z.number().nonnegative(),
      rule: z.string(),
      explanation: z.string(),
    }),
    ddp: z
      .record(z.string(), z.union([z.boolean(), z.number(), list(z.number())]))
      .meta({ description: 'arguments of DistributedDataParallel, by their names there' }),
    alternatives: list(
      z.strictObject({ name: z.string(), calls: count, exposedMs: milliseconds, finishMs: milliseconds }),
    ),
    buckets: list(z.strictObject({ tensors: list(z.strictObject({ name: z.string(), elements: count })) })),
  }),
  'exchange probe': answer({
    format: z.literal('dsc.exchange.link/1'),
    alphaMicroseconds: microseconds,
    bandwidthBytesPerSecond: bytesPerSecond,
    hosts: list(
      z.strictObject({
        host: z.string(),
        alphaMicroseconds: microseconds,
        bandwidthBytesPerSecond: bytesPerSecond,
        sizes: list(z.strictObject({ messageBytes: byteCount, medianMicroseconds: microseconds })),
      }),
    ),
  }),
  'exchange bench': answer({
    ranks: count,
    wire,
    mode: z.enum(['ring', 'direct']),
    levels: z.literal([1, 2]),
    rows: list(benchRow),
  }),
  'exchange serve': answer({ host: z.string(), port: count }),
} as const

/** Why a link is too thin, and what would work on it. */
export type ThinLink = z.infer<typeof thinLink>
/** One way of sharding, and its predicted cost. */
export type UnitAlternative = z.infer<typeof unitAlternative>
/** Neighboring blocks of a model that FSDP2 gathers and reduces together. */
export type ShardedUnit = z.infer<typeof shardedUnit>
/** Which blocks to shard together. */
export type UnitPlan = z.infer<typeof unitPlan>
/** Result for one size of a benchmark. */
export type BenchRow = z.infer<typeof benchRow>
