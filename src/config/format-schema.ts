import { z } from 'zod'
import { FORMAT_NAMES } from '../model/sample-formats.js'
import { DELIMITER } from '../model/told-dialect.js'
import { flag } from './schema-fields.js'

const EXAMPLE = '{csv: {delimiter: ";", quote: none, header: false}}'

const ONE = { error: 'one ASCII character such as ";"' }

const dialect = z.strictObject({
  delimiter: z
    .string(ONE)
    .regex(DELIMITER, ONE)
    .describe('One ASCII character. Default: found in each file.')
    .optional(),
  quote: z
    .enum(['"', 'none'], { error: `'"' or none` })
    .describe('none: quotes are text. Default: found in each file.')
    .optional(),
  header: flag.describe('Whether the first record names the fields. Default: found in each file.').optional(),
})

/** How the samples of a dataset lie in its files: the name of a format, or how its CSV is written. */
export const format = z
  .union([z.enum(FORMAT_NAMES), z.strictObject({ csv: dialect }), z.strictObject({ tsv: dialect })], {
    error: `one of ${FORMAT_NAMES.join(', ')}, or ${EXAMPLE}`,
  })
  .describe('Format for feeds. Default: the format of most bytes.')
