import { z } from 'zod'
import { DscError } from '../../failure/dsc-error.js'

// Everything that a client sends is checked by a schema of these fields: anybody on the machine may send anything.

const MAX_TEXT_CHARACTERS = 4096
const MAX_TEXTS = 1000

/** The message of a schema that refuses a value. */
export function expected(what: string) {
  return {
    error: ({ input }: { readonly input?: unknown }) => `expected ${what}, found ${show(input)}`,
  }
}

function show(input: unknown): string {
  try {
    return String(JSON.stringify(input)).slice(0, 80)
  } catch (error) {
    if (error instanceof RangeError) return 'a value that is nested too deeply'
    throw error
  }
}

/** A text without control characters, of at most so many characters. */
export function line(atLeast: number, atMost: number) {
  const message = expected(`a line of ${atLeast} to ${atMost} characters`)
  return z
    .string(message)
    .min(atLeast, message)
    .max(atMost, message)
    .regex(/^\P{Cc}*$/u, message)
}

/** A list of at most so many. */
export function list<Item extends z.ZodType>(item: Item, atMost = MAX_TEXTS) {
  const message = expected(`a list of at most ${atMost}`)
  return z.array(item, message).max(atMost, message)
}

/** An object with these fields; others are dropped. */
export function fields<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.object(shape, expected('an object'))
}

export const text = line(0, MAX_TEXT_CHARACTERS)
export const texts = list(text)
export const whole = z.int(expected('a whole number'))
export const flag = z.boolean(expected('true or false'))

/** Reads input. Throws a RangeError that names the first field that is wrong, below `name`. */
export function readInput<Value>(schema: z.ZodType<Value>, raw: unknown, name?: string): Value {
  const read = schema.safeParse(raw)
  if (read.success) return read.data
  const { path, message } = read.error.issues[0]!
  throw new RangeError(`${[...(name === undefined ? [] : [name]), ...path].join('.') || 'body'}: ${message}`)
}

/** Turns a RangeError, which says what was expected, into a mistake of the client. */
export function asUsage(error: unknown): unknown {
  return error instanceof RangeError ? new DscError('USAGE', error.message, { cause: error }) : error
}
