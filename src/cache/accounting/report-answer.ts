import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { byteCount, count, list, milliseconds, ratio, time } from '../../answers/fields.js'
import { WAIT_PLACES } from './job-times.js'

const tally = z.strictObject({
  dataset: z.string(),
  uses: count,
  hits: count,
  waitedMs: milliseconds,
  // Bytes that its uses read, each counted as one reading of the whole dataset.
  readBytes: byteCount,
  storeBytes: byteCount,
  peerBytes: byteCount,
  evictions: count,
  // Stagings on a node from which it had been evicted within the period.
  stagedAgain: count,
  stagedAgainBytes: byteCount,
})

const wait = z.strictObject({
  task: z.string(),
  dataset: z.string(),
  node: z.string(),
  waitedMs: milliseconds,
  at: time,
  parties: list(z.string()),
})

const refusal = z.strictObject({
  dataset: z.string(),
  node: z.string(),
  limits: list(z.string()),
  lastTask: z.string().nullable(),
  lastAt: time,
  lastReason: z.string(),
  count,
})

const unused = z.strictObject({
  dataset: z.string(),
  node: z.string(),
  diskBytes: byteCount,
  lastUsedAt: time,
  lastTask: z.string().nullable(),
  isLocked: z.boolean(),
})

const job = z.strictObject({
  task: z.string(),
  nodes: count,
  gpus: count,
  gpuMs: milliseconds,
  waitedGpuMs: milliseconds,
  waits: list(z.strictObject({ place: z.enum(WAIT_PLACES), culprit: z.string(), gpuMs: milliseconds })),
})

/** `dsc report --json`. */
export const reportAnswer = answer({
  since: time,
  until: time,
  node: z.string().nullable().meta({ description: 'null = all nodes' }),
  uses: count,
  hits: count,
  hitRate: ratio.nullable(),
  readBytes: byteCount,
  storeBytes: byteCount,
  peerBytes: byteCount,
  savedBytes: byteCount,
  egressPricePerGigabyte: z.number().nullable(),
  savedMoney: z.number().nullable(),
  waitedMs: milliseconds,
  usesOfUnknownSize: count,
  datasets: list(tally),
  waits: list(wait),
  refusals: list(refusal),
  unused: list(unused),
  jobs: list(job),
  advice: list(z.strictObject({ change: z.string(), because: z.string() })),
})

export type ReportAnswer = z.infer<typeof reportAnswer>
