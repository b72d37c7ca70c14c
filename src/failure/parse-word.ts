import { DscError } from './dsc-error.js'

/** Runs a parser of the model on a word from the user; turns its RangeError into a USAGE failure. */
export function parseWord<T>(parse: (raw: string) => T, raw: string): T {
  try {
    return parse(raw)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new DscError('USAGE', error.message)
  }
}
