import { z } from 'zod'
import type { ToldDialect } from '../../model/sample-formats.js'
import { tryJson } from '../../model/try-json.js'

const DIALECT = z.strictObject({
  delimiter: z.string().length(1).optional(),
  quote: z.enum(['"', 'none']).optional(),
  header: z.boolean().optional(),
})

const EXAMPLE = '{"delimiter":";","quote":"none","header":false}'

/** Parses the dialect of CSV, as JSON. Throws a RangeError that says what was expected. */
export function parseDialect(raw: string): ToldDialect {
  const { success, data } = DIALECT.safeParse(tryJson(raw))
  if (success) return data
  throw new RangeError(`expected JSON with delimiter, quote or header, such as ${EXAMPLE}, found ${raw}`)
}
