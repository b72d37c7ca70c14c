import type { ToldDialect } from './sample-formats.js'
import { tryJson } from './try-json.js'

const EXAMPLE = '{"delimiter":";","quote":"none","header":false}'

/** One byte in UTF-8, and none that ends a record or encloses a field. */
export const DELIMITER = /^[^"\r\n\u0080-\uffff]$/

/** How each part of a dialect may be written. */
const IS_RIGHT: Readonly<Record<string, (value: unknown) => boolean>> = {
  delimiter: (value) => typeof value === 'string' && DELIMITER.test(value),
  quote: (value) => value === '"' || value === 'none',
  header: (value) => typeof value === 'boolean',
} satisfies Readonly<Record<keyof ToldDialect, (value: unknown) => boolean>>

/** Whether a value from outside is the dialect of CSV. */
export function isDialect(value: unknown): value is ToldDialect {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.entries(value).every(([key, part]) => Object.hasOwn(IS_RIGHT, key) && IS_RIGHT[key]!(part))
}

/** Parses the dialect of CSV, as JSON. Throws a RangeError that says what was expected. */
export function parseDialect(text: string): ToldDialect {
  const value = tryJson(text)
  if (isDialect(value)) return value
  throw new RangeError(`expected JSON with delimiter, quote or header, such as ${EXAMPLE}, found ${text}`)
}
