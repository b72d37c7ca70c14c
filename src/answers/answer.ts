import { z } from 'zod'

/**
 * A JSON answer of our programs: on stdout with `--json`, from an agent, from `prepare()` and `status()`. `dsc` is the
 * version of its format: within a version fields are only added, so readers must accept unknown ones.
 */
export interface Answer {
  readonly dsc: 1
}

/**
 * The schema of an answer. It lives in a file `…-answer.ts` beside the function that makes the answer, which imports
 * only its type: zod takes longer to load than a ready copy takes to prepare.
 */
export function answer<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject({ dsc: z.literal(1).meta({ description: 'version of the answer' }), ...shape })
}
