import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { byteCount, bytesPerSecond, count, list, milliseconds, ratio, seconds } from '../../answers/fields.js'
import { FEED_STARTS } from '../../open/feed-request.js'

const counts = z.record(z.string(), count)

const pace = z.strictObject({ batches: count, secondsPerBatch: z.number(), noise: z.number() })

/** The answer of the `dsc feed` command that runs a trainer; headspace.test.ts covers it. */
export const FEED_TRIAL_ANSWERS = {
  'feed headspace': answer({
    /** For the slowest worker, which the others wait for: 0.05 means 5 % more batches in the same time. */
    fasterIfFree: z.number(),
    noise: z.number(),
    workers: list(z.strictObject({ rank: count, worker: count, asItIs: pace, free: pace })),
  }),
} as const

/** The answers of the other `dsc feed` commands. */
export const FEED_ANSWERS = {
  'feed serve': answer({
    socket: z.string(),
    pid: count,
    samples: count,
    sampleBytes: byteCount,
    fingerprint: z.string(),
    seed: count,
    order: z.string(),
  }),
  'feed index': answer({
    path: z.string(),
    formats: list(
      z.strictObject({ format: z.string(), columns: list(z.string()).nullable(), samples: count }),
    ),
    samples: count,
    files: count,
    sampleBytes: byteCount,
    largestSampleBytes: byteCount,
    indexBytes: byteCount,
    fingerprint: z.string(),
    isListedBefore: z.boolean(),
    elapsedSeconds: seconds,
    leftOut: list(z.strictObject({ path: z.string(), reason: z.string() })),
  }),
  'feed plan': answer({
    path: z.string(),
    format: z.string(),
    samples: count,
    sampleBytes: byteCount,
    fingerprint: z.string(),
    isListedBefore: z.boolean(),
    isMapped: z.boolean(),
    leftOut: list(z.strictObject({ path: z.string(), reason: z.string() })),
    stepsPerEpoch: count,
    isRehearsed: z.boolean(),
    k: count,
    lowWater: count,
    requestsPerEpoch: count,
    requestsPerLaterEpoch: count,
    windowSamples: count,
    memoryBytes: byteCount,
    prefetchBytes: byteCount,
    leaseBytes: byteCount,
    carryBytes: byteCount,
    leastBytes: byteCount,
    isFeasible: z.boolean(),
    memoryForRequestsBytes: byteCount.nullable(),
    carryShare: ratio,
    hitRate: ratio,
    cost: z.strictObject({ fixedMs: milliseconds, bytesPerMs: z.number().nonnegative() }).nullable(),
    stall: z
      .strictObject({
        demandBytesPerSecond: bytesPerSecond,
        supplyBytesPerSecond: bytesPerSecond,
        stallShare: ratio,
        missTriggerStallShare: ratio,
        cause: z.enum(['none', 'rate', 'latency']),
      })
      .nullable(),
  }),
  'feed plan --cold': answer({
    dataset: z.string(),
    objects: count,
    contentBytes: byteCount,
    listMs: milliseconds,
    startMs: milliseconds.meta({ description: 'what starting and listing take' }),
    start: z.enum(FEED_STARTS),
    samples: count.nullable().meta({
      description: 'of tar shards an estimate, by the first members of one; null: rows, not known yet',
    }),
    isFedWhileArriving: z.boolean(),
    firstBatchMs: milliseconds,
    wholeMs: milliseconds,
    epochMs: milliseconds.nullable(),
    waitMs: milliseconds.nullable(),
  }),
  'feed bench': answer({
    samples: count,
    epochs: list(
      z.strictObject({
        epoch: count,
        elapsedSeconds: seconds,
        samplesPerSecond: z.number().nonnegative(),
        bytesPerSecond,
      }),
    ),
    counts,
    memory: z.strictObject({
      k: count,
      lowWater: count,
      prefetchBytes: byteCount,
      leaseBytes: byteCount,
      bottomBytes: byteCount,
      carryBytes: byteCount,
      leastBytes: byteCount,
      isFeasible: z.boolean(),
    }),
    arena: counts,
  }),
  'feed storage': answer({
    host: z.string(),
    port: count,
    samples: count,
    stripe: z.strictObject({ index: count, count }).nullable(),
  }),
  'feed status': answer({
    metrics: z.record(z.string(), z.number()).meta({ description: 'by name, with labels' }),
    feeds: list(z.strictObject({ socket: z.string(), metrics: z.record(z.string(), z.number()) })).meta({
      description: 'all feeds found; `metrics` are those of the first',
    }),
  }),
} as const
