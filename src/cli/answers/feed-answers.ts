import { z } from 'zod'
import { byteCount as bytes, count } from '../../answers/fields.js'
import { FEED_STARTS } from '../../open/feed-request.js'

const share = z.number().min(0).max(1)
const rate = z.number().nonnegative()
const ms = z.number().nonnegative()
const counts = z.record(z.string(), count)

const pace = z.strictObject({ batches: count, secondsPerBatch: z.number(), noise: z.number() })

/** What the command of `dsc feed` prints that runs a trainer; headspace.test.ts compares it with real output. */
export const FEED_TRIAL_ANSWERS = {
  'feed headspace': z.strictObject({
    /** Of the slowest worker, which the others wait for: 0.05 = 5 % more batches in the same time. */
    fasterIfFree: z.number(),
    noise: z.number(),
    workers: z.array(z.strictObject({ rank: count, worker: count, asItIs: pace, free: pace })),
  }),
} as const

/** What the other commands of `dsc feed` print with `--json`. */
export const FEED_ANSWERS = {
  'feed serve': z.strictObject({
    socket: z.string(),
    pid: count,
    samples: count,
    bytes,
    fingerprint: z.string(),
    seed: count,
    order: z.string(),
  }),
  'feed index': z.strictObject({
    path: z.string(),
    formats: z.array(
      z.strictObject({ format: z.string(), columns: z.array(z.string()).nullable(), samples: count }),
    ),
    samples: count,
    files: count,
    bytes,
    largestBytes: bytes,
    indexBytes: bytes,
    fingerprint: z.string(),
    isListedBefore: z.boolean(),
    seconds: z.number().nonnegative(),
    leftOut: z.array(z.strictObject({ path: z.string(), reason: z.string() })),
  }),
  'feed plan': z.strictObject({
    path: z.string(),
    format: z.string(),
    samples: count,
    bytes,
    fingerprint: z.string(),
    isListedBefore: z.boolean(),
    isMapped: z.boolean(),
    leftOut: z.array(z.strictObject({ path: z.string(), reason: z.string() })),
    stepsPerEpoch: count,
    isRehearsed: z.boolean(),
    k: count,
    lowWater: count,
    requestsPerEpoch: count,
    requestsPerLaterEpoch: count,
    windowSamples: count,
    memoryBytes: bytes,
    prefetchBytes: bytes,
    leaseBytes: bytes,
    carryBytes: bytes,
    leastBytes: bytes,
    isFeasible: z.boolean(),
    memoryForRequestsBytes: bytes.nullable(),
    carryShare: share,
    hitRate: share,
    cost: z.strictObject({ fixedMs: ms, bytesPerMs: rate }).nullable(),
    stall: z
      .strictObject({
        demandBytesPerSecond: rate,
        supplyBytesPerSecond: rate,
        stallShare: share,
        missTriggerStallShare: share,
        cause: z.enum(['none', 'rate', 'latency']),
      })
      .nullable(),
  }),
  'feed plan --cold': z.strictObject({
    dataset: z.string(),
    objects: count,
    bytes,
    listMs: ms,
    startMs: ms.meta({ description: 'what starting and listing take' }),
    start: z.enum(FEED_STARTS),
    samples: count.nullable().meta({
      description: 'of tar shards an estimate, by the first members of one; null: rows, not known yet',
    }),
    isFedWhileArriving: z.boolean(),
    firstBatchMs: ms,
    wholeMs: ms,
    epochMs: ms.nullable(),
    waitMs: ms.nullable(),
  }),
  'feed bench': z.strictObject({
    samples: count,
    epochs: z.array(
      z.strictObject({
        epoch: count,
        seconds: z.number().nonnegative(),
        samplesPerSecond: rate,
        bytesPerSecond: rate,
      }),
    ),
    counts,
    memory: z.strictObject({
      k: count,
      lowWater: count,
      prefetchBytes: bytes,
      leaseBytes: bytes,
      bottomBytes: bytes,
      carryBytes: bytes,
      leastBytes: bytes,
      isFeasible: z.boolean(),
    }),
    arena: counts,
  }),
  'feed storage': z.strictObject({
    host: z.string(),
    port: count,
    samples: count,
    stripe: z.strictObject({ index: count, count }).nullable(),
  }),
  'feed status': z
    .record(z.string(), z.number())
    .meta({ description: 'every metric of the feed, with labels' }),
} as const
