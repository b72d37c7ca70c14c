import { z } from 'zod'
import { byteCount as bytes, count } from '../../answers/fields.js'

const duration = z.number().nonnegative()
const rate = z.number().nonnegative()
const wire = z.enum(['fp16', 'fp32'])

const unitAlternative = z.strictObject({
  name: z.string(),
  units: count,
  prefetch: count,
  stepMs: duration,
  exposedMs: z.number(),
  gatheredBytes: bytes,
})

/** What the commands of `dsc exchange` print with `--json`. `plan` and `probe` write the same into `--out`. */
export const EXCHANGE_ANSWERS = {
  'exchange plan': z.strictObject({
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
        oneBitStepMs: duration,
        halfStepMs: duration,
        localSteps: count,
        localStepMs: duration,
        explanation: z.string(),
      })
      .nullable(),
    sharded: z
      .strictObject({
        units: z.array(z.strictObject({ modules: z.array(z.string()), elements: count })),
        chosen: unitAlternative,
        alternatives: z.array(unitAlternative),
      })
      .nullable(),
    backwardMs: z.array(duration),
    unlikeRanks: z.string().nullable(),
    bucketRule: z.string(),
    link: z.strictObject({ alphaMicroseconds: duration, bandwidthBytesPerSecond: rate }),
    threshold: z.strictObject({
      wireBytes: bytes,
      layers: z.number().nonnegative(),
      rule: z.string(),
      explanation: z.string(),
    }),
    ddp: z.record(z.string(), z.union([z.boolean(), z.number(), z.array(z.number())])).meta({
      description: 'arguments of DistributedDataParallel, by their names there',
    }),
    alternatives: z.array(
      z.strictObject({ name: z.string(), calls: count, exposedMs: duration, finishMs: duration }),
    ),
    buckets: z.array(
      z.strictObject({ tensors: z.array(z.strictObject({ name: z.string(), elements: count })) }),
    ),
  }),
  'exchange probe': z.strictObject({
    format: z.literal('dsc.exchange.link/1'),
    alphaMicroseconds: duration,
    bandwidthBytesPerSecond: rate,
    hosts: z.array(
      z.strictObject({
        host: z.string(),
        alphaMicroseconds: duration,
        bandwidthBytesPerSecond: rate,
        sizes: z.array(z.strictObject({ bytes, medianMicroseconds: duration })),
      }),
    ),
  }),
  'exchange bench': z.strictObject({
    ranks: count,
    wire,
    mode: z.enum(['ring', 'direct']),
    levels: z.literal([1, 2]),
    rows: z.array(z.strictObject({ bytes, medianMs: duration, bytesPerSecond: rate })),
  }),
  'exchange serve': z.strictObject({ host: z.string(), port: count }),
} as const
