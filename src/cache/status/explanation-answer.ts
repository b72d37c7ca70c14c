import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { byteCount, count, list, time } from '../../answers/fields.js'
import { lease } from '../leases/lease-answer.js'
import { copy, event, layout } from './status-answer.js'

/** `dsc why <dataset> --json`. */
export const explanationAnswer = answer({
  dataset: z.string(),
  copies: list(
    z.strictObject({
      ...copy.shape,
      hereBecause: event.nullable(),
      keptBy: list(z.string()),
      leases: list(lease),
      evictionRank: z.strictObject({ rank: count, candidates: count, reason: z.string() }).nullable(),
    }),
  ),
  layouts: list(layout),
  lastEvicted: event.nullable(),
  lastRefused: event.nullable(),
  lastFailed: event.nullable(),
  nextVictims: list(
    z.strictObject({
      copyId: z.string(),
      dataset: z.string(),
      node: z.string(),
      diskBytes: byteCount,
      lastUsedAt: time,
      reason: z.string(),
    }),
  ),
})

/** `dsc why <id> --json`: the failure with that id in its message. */
export const failedAnswer = answer({ id: z.string(), failure: event })

export type ExplanationAnswer = z.infer<typeof explanationAnswer>
