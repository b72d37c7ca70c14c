import { z } from 'zod'
import { answer } from '../answers/answer.js'
import { count } from '../answers/fields.js'

/** A failure, as in every answer. */
export const failure = z
  .strictObject({
    code: z.string(),
    message: z.string(),
    hint: z.string().optional(),
    id: z.string().optional().meta({ description: 'what dsc why explains it by' }),
  })
  .meta({ id: 'failure' })

/** The stderr output of any failing command with `--json`. */
export const errorAnswer = answer({
  error: z.strictObject({ ...failure.shape, exitCode: count, isRetryable: z.boolean() }),
})

export type FailureAnswer = z.infer<typeof failure>
export type ErrorAnswer = z.infer<typeof errorAnswer>
