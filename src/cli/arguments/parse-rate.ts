import { DscError } from '../../failure/dsc-error.js'

/** A number of at least 0, such as a learning rate. */
export function parseRate(text: string): number {
  const rate = Number(text)
  if (text.trim() !== '' && rate >= 0 && rate < Number.POSITIVE_INFINITY) return rate
  throw new DscError('USAGE', `${text} is not a number of at least 0`)
}
