import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { byteCount, count, list, version } from '../../answers/fields.js'
import { failure } from '../../failure/failure-answer.js'

const damage = z.strictObject({
  path: z.string(),
  problem: z.string(),
  expected: z.string(),
  found: z.string(),
  parts: list(count).optional().meta({ description: 'the wrong parts; absent = the whole file' }),
})

const repair = z.strictObject({
  repairedFiles: count,
  fetchedBytes: byteCount,
  removedFiles: count,
  failures: list(z.strictObject({ path: z.string(), ...failure.shape })),
})

/** `dsc verify --json`. */
export const verifiedAnswer = answer({
  copies: list(
    z.strictObject({
      dataset: z.string(),
      version: version.nullable(),
      path: z.string(),
      checkedFiles: count,
      checkedBytes: byteCount,
      damages: list(damage),
      repaired: repair.nullable(),
      failure: failure.nullable(),
    }),
  ),
})

const finding = z.discriminatedUnion('state', [
  // The same objects, with the same sizes, etags, version ids and checksums: the manifest has the same digest.
  z.strictObject({ state: z.literal('same'), provenBy: z.enum(['listing', 'size-and-time']) }),
  z.strictObject({ state: z.literal('changed'), version }),
  z.strictObject({ state: z.literal('unreadable'), failure }),
  z.strictObject({ state: z.literal('unknown') }),
])

/** `dsc receipt --verify --json`. */
export const verifiedReceiptAnswer = answer({
  task: z.string(),
  isProven: z.boolean(),
  datasets: list(
    z.strictObject({
      dataset: z.string(),
      version,
      // The source has it, or this node does and every byte was compared just now.
      isAvailable: z.boolean(),
      source: finding,
      // The copy on this node, read and compared with its digests; null = this node has no copy.
      here: z.strictObject({ checkedFiles: count, checkedBytes: byteCount, damages: count }).nullable(),
      // Other nodes that claim to have it; `dsc verify` on them would confirm it.
      nodes: list(z.string()),
    }),
  ),
})

export type VerifiedReceiptAnswer = z.infer<typeof verifiedReceiptAnswer>
