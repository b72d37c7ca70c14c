import { DscError } from './dsc-error.js'

/** Throws INTERRUPTED after `signal` aborted, or the DscError that is its reason. */
export function throwIfStopped(signal: AbortSignal | undefined): void {
  if (!signal?.aborted) return
  if (signal.reason instanceof DscError) throw signal.reason
  throw new DscError('INTERRUPTED', 'stopped before the download was complete', {
    hint: 'run the same command again: finished parts are kept',
  })
}
