import { z } from 'zod'
import { answer } from '../answers/answer.js'
import { count } from '../answers/fields.js'

/** A failure, as every answer has it. */
export const failure = z
  .strictObject({
    code: z.string(),
    message: z.string(),
    hint: z.string().optional(),
    id: z.string().optional().meta({ description: 'what dsc why explains it by' }),
  })
  .meta({ id: 'failure' })

/** What any command that fails prints on stderr with `--json`. */
export const errorAnswer = answer({ error: z.strictObject({ ...failure.shape, exitCode: count }) })

export type FailureAnswer = z.infer<typeof failure>
export type ErrorAnswer = z.infer<typeof errorAnswer>
