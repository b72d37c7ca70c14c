import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { list } from '../../answers/fields.js'
import { reportAnswer } from '../../cache/accounting/report-answer.js'
import { leaseLine } from '../../cache/leases/lease-answer.js'
import { eventLine, statusLine } from '../../cache/status/status-answer.js'
import { verifiedReceiptAnswer } from '../../cache/upkeep/verified-answer.js'
import { EXCHANGE_ANSWERS } from '../../exchange/exchange-answer.js'
import { MEMORY_ANSWERS } from '../../memory/memory-answer.js'
import { CACHE_ANSWERS } from './cache-answers.js'
import { CLUSTER_ANSWERS } from './cluster-answers.js'
import { FEED_ANSWERS, FEED_TRIAL_ANSWERS } from './feed-answers.js'

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

/** The stdout of each command with `--json`, by the command's words; `error` is the stderr of any of them. */
export const ANSWERS = {
  ...CACHE_ANSWERS,
  ...ACCOUNT_ANSWERS,
  ...CLUSTER_ANSWERS,
  ...FEED_ANSWERS,
  ...FEED_TRIAL_ANSWERS,
  ...EXCHANGE_ANSWERS,
  ...MEMORY_ANSWERS,
} as const

/** An answer, by the command's words, without the version that the reporter adds. */
export type AnswerOf<Words extends keyof typeof ANSWERS> = Omit<z.infer<(typeof ANSWERS)[Words]>, 'dsc'>

/** A line that a command prints with `--ndjson`, by the command's words. */
export const ANSWER_LINES = {
  'status --ndjson': statusLine,
  'leases --ndjson': leaseLine,
  'history --ndjson': eventLine,
} as const

/** The JSON Schema of every answer, as `$defs` by the command's words. Readers must expect fields beyond the schema. */
export function createAnswerSchema(): Readonly<Record<string, unknown>> {
  const { properties, $defs } = z.toJSONSchema(z.object({ ...ANSWERS, ...ANSWER_LINES }), {
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
      delete jsonSchema.readOnly // readonly lists are a matter of TypeScript, not of JSON
    },
  })
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'What dsc answers with --json, by command',
    $defs: { ...$defs, ...properties },
  }
}
