import { InvalidArgumentError } from 'commander'
import { isDscError } from '../../failure/dsc-error.js'
import { escapeControls } from '../../failure/escape-controls.js'

/** Adapts a model's `parse…` function for a flag: its error becomes an error in the arguments. */
export function argument<Value>(parse: (raw: string) => Value): (raw: string) => Value {
  return (raw) => {
    try {
      return parse(raw)
    } catch (error) {
      if (error instanceof RangeError || isDscError(error, 'USAGE'))
        throw new InvalidArgumentError(error.message)
      throw error
    }
  }
}

/** Reads a percentage above 0 and up to 100, with or without `%`. */
export function parsePercent(raw: string): number {
  const percent = /^\d+(\.\d+)?\s*%?$/.test(raw) ? Number.parseFloat(raw) : Number.NaN
  if (percent > 0 && percent <= 100) return percent
  throw new RangeError(`expected a percentage above 0 and up to 100, found ${JSON.stringify(raw)}`)
}

/** Makes a parser of numbers from `least` on, or above it. It throws a RangeError that shows what was found. */
export function numberFrom(
  least: number,
  { isAbove = false, isWhole = false }: { readonly isAbove?: boolean; readonly isWhole?: boolean } = {},
): (raw: string) => number {
  const kind = isWhole ? 'whole number' : 'number'
  const expected = isAbove ? `a ${kind} above ${least}` : `a ${kind} of ${least} or more`
  return (raw) => {
    const value = Number(raw)
    const isOfKind = isWhole
      ? /^\d+$/.test(raw) && Number.isSafeInteger(value)
      : raw.trim() !== '' && Number.isFinite(value)
    if (isOfKind && (value > least || (value === least && !isAbove))) return value
    throw new RangeError(`expected ${expected}, found ${JSON.stringify(raw)}`)
  }
}

/** Reads a whole number of at least 1. */
export const parseCount = numberFrom(1, { isWhole: true })
/** Reads a whole number of at least 0. */
export const parseWholeNumber = numberFrom(0, { isWhole: true })
/** Reads a number of at least 0, such as a learning rate. */
export const parseRate = numberFrom(0)
/** Reads a number above 0. */
export const parsePositive = numberFrom(0, { isAbove: true })

/** Checks words that others are shown on their terminals: some, and nothing that a terminal obeys. */
export function parseWords(raw: string): string {
  if (raw.trim() !== '' && !/[\n\t]/.test(raw) && escapeControls(raw) === raw) return raw
  throw new RangeError(
    `expected words without control characters, found ${escapeControls(JSON.stringify(raw))}`,
  )
}

/** Checks an `http://` or `https://` URL and returns it unchanged. */
export function parseEndpoint(raw: string): string {
  if (/^https?:\/\//.test(raw) && URL.canParse(raw)) return raw
  throw new RangeError(`expected a URL such as http://127.0.0.1:9000, found ${JSON.stringify(raw)}`)
}
