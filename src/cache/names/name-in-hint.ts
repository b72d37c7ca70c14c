import { DscError, isDscError } from '../../failure/dsc-error.js'

/** A source knows its URL but not its dataset: replaces `<dataset>` in its hint with the name. */
export function nameInHint<Failure>(error: Failure, dataset: string): Failure | DscError {
  if (!isDscError(error) || !error.hint?.includes('<dataset>')) return error
  const { code, message, hint } = error
  return new DscError(code, message, { hint: hint.replaceAll('<dataset>', dataset), cause: error })
}
