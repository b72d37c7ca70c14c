import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { byteCount, bytesPerSecond, count, list, microseconds, milliseconds } from '../../answers/fields.js'
import { WIRE_TYPES } from '../../exchange/plan/wire-type.js'

const wire = z.enum(WIRE_TYPES)

const unitAlternative = z.strictObject({
  name: z.string(),
  units: count,
  prefetch: count,
  stepMs: milliseconds,
  exposedMs: z.number().meta({ unit: 'milliseconds' }),
  gatheredBytes: byteCount,
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
    thinLink: z
      .strictObject({
        bestSyncShare: z.number(),
        oneBitStepMs: milliseconds,
        halfStepMs: milliseconds,
        localSteps: count,
        localStepMs: milliseconds,
        explanation: z.string(),
      })
      .nullable(),
    sharded: z
      .strictObject({
        units: list(z.strictObject({ modules: list(z.string()), elements: count })),
        chosen: unitAlternative,
        alternatives: list(unitAlternative),
      })
      .nullable(),
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
    ddp: z.record(z.string(), z.union([z.boolean(), z.number(), list(z.number())])).meta({
      description: 'arguments of DistributedDataParallel, by their names there',
    }),
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
    rows: list(z.strictObject({ messageBytes: byteCount, medianMs: milliseconds, bytesPerSecond })),
  }),
  'exchange serve': answer({ host: z.string(), port: count }),
} as const

export type ExchangePlanAnswer = z.infer<(typeof EXCHANGE_ANSWERS)['exchange plan']>
export type ExchangeProbeAnswer = z.infer<(typeof EXCHANGE_ANSWERS)['exchange probe']>
export type ExchangeBenchAnswer = z.infer<(typeof EXCHANGE_ANSWERS)['exchange bench']>
export type ExchangeServeAnswer = z.infer<(typeof EXCHANGE_ANSWERS)['exchange serve']>
