import { z } from 'zod'
import { bytes, count, failure, open, time, version } from './output-objects.js'

/** What `dsc report` and `dsc receipt` print with `--json`; report.test.ts and receipt.test.ts compare it with real output. */
export const ACCOUNT_OUTPUTS = {
  report: z.strictObject({
    since: time,
    until: time,
    node: z.string().nullable().describe('null = all nodes'),
    uses: count,
    hits: count,
    hitRate: z.number().min(0).max(1).nullable(),
    readBytes: bytes,
    storeBytes: bytes,
    peerBytes: bytes,
    savedBytes: bytes,
    egressPricePerGigabyte: z.number().nullable(),
    savedMoney: z.number().nullable(),
    waitedMs: count,
    usesOfUnknownSize: count,
    datasets: z.array(
      z.strictObject({
        dataset: z.string(),
        uses: count,
        hits: count,
        waitedMs: count,
        readBytes: bytes,
        storeBytes: bytes,
        peerBytes: bytes,
        evictions: count,
        stagedAgain: count,
        stagedAgainBytes: bytes,
      }),
    ),
    waits: z.array(
      z.strictObject({
        task: z.string(),
        dataset: z.string(),
        node: z.string(),
        waitedMs: count,
        at: time,
        parties: z.array(z.string()),
      }),
    ),
    refusals: z.array(
      z.strictObject({
        dataset: z.string(),
        node: z.string(),
        limits: z.array(z.string()),
        lastTask: z.string().nullable(),
        lastAt: time,
        lastReason: z.string(),
        count,
      }),
    ),
    unused: z.array(
      z.strictObject({
        dataset: z.string(),
        node: z.string(),
        bytes,
        lastUsedAt: time,
        lastTask: z.string().nullable(),
        isLocked: z.boolean(),
      }),
    ),
    advice: z.array(z.strictObject({ change: z.string(), because: z.string() })),
  }),
  receipt: z
    .looseObject({
      '@context': open,
      '@type': z.literal('sc:Dataset'),
      name: z.string(),
      conformsTo: z.literal('http://mlcommons.org/croissant/1.0'),
      distribution: z.array(open),
      'dsc:task': z.string(),
      'dsc:parties': z.array(z.string()),
    })
    .describe('Croissant JSON-LD'),
  'receipt --verify': z.strictObject({
    task: z.string(),
    isProven: z.boolean(),
    datasets: z.array(
      z.strictObject({
        dataset: z.string(),
        version,
        isAvailable: z.boolean(),
        source: z.discriminatedUnion('state', [
          z.strictObject({ state: z.literal('same'), provenBy: z.enum(['listing', 'size-and-time']) }),
          z.strictObject({ state: z.literal('changed'), version }),
          z.strictObject({ state: z.literal('unreadable'), failure }),
          z.strictObject({ state: z.literal('unknown') }),
        ]),
        here: z.strictObject({ checkedFiles: count, checkedBytes: bytes, damages: count }).nullable(),
        nodes: z.array(z.string()),
      }),
    ),
  }),
} as const
