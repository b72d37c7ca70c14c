import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { list } from '../../answers/fields.js'
import { reportAnswer } from '../../cache/accounting/report-answer.js'
import { verifiedReceiptAnswer } from '../../cache/upkeep/verified-answer.js'

const receiptAnswer = answer({
  receipt: z
    .looseObject({
      '@context': z.unknown(),
      '@type': z.literal('sc:Dataset'),
      name: z.string(),
      conformsTo: z.literal('http://mlcommons.org/croissant/1.0'),
      distribution: list(z.unknown()),
      'dsc:task': z.string(),
      'dsc:parties': list(z.string()),
    })
    .meta({ description: 'Croissant JSON-LD: what the command prints without --json' }),
})

/** The answers of `dsc report` and `dsc receipt`. */
export const ACCOUNT_ANSWERS = {
  report: reportAnswer,
  receipt: receiptAnswer,
  'receipt --verify': verifiedReceiptAnswer,
} as const

export type ReceiptAnswer = z.infer<typeof receiptAnswer>
