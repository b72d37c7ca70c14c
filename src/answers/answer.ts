import { z } from 'zod'

/**
 * What a program of ours answers in JSON: on stdout with `--json`, from an agent, from `prepare()` and `status()`. `dsc`
 * is the version of its form: within one version fields are only added, so readers must expect ones they do not know.
 */
export interface Answer {
  readonly dsc: 1
}

/**
 * The description of an answer. It stands in a file `…-answer.ts` beside the function that makes the answer, which
 * imports its type alone: zod takes longer to load than a ready copy takes to prepare.
 */
export function answer<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject({ dsc: z.literal(1).meta({ description: 'version of the answer' }), ...shape })
}
