import { z } from 'zod'
import { bytes, count, time } from './output-objects.js'

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
} as const
