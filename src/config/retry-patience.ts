import { DscError } from '../failure/dsc-error.js'
import { parseDuration } from '../model/duration.js'

/** How long to keep trying a source unless DSC_RETRY_FOR says otherwise: a store restarts, a name server fails over. */
const DEFAULT_PATIENCE_MS = 300_000

/** Returns how long to keep trying a source that does not answer, in ms. Throws CONFIG_INVALID. */
export function readRetryPatienceMs(environment: Readonly<Record<string, string | undefined>>): number {
  const raw = environment.DSC_RETRY_FOR
  if (!raw) return DEFAULT_PATIENCE_MS
  try {
    return parseDuration(raw)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new DscError('CONFIG_INVALID', `DSC_RETRY_FOR: ${error.message}`, {
      hint: 'set it to a time such as 5m',
    })
  }
}
