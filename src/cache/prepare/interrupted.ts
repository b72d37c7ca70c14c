import { DscError } from '../../failure/dsc-error.js'

/** The failure that interrupts a wait or a download on SIGINT and SIGTERM. */
export function interrupted(signal: AbortSignal): DscError {
  return new DscError('INTERRUPTED', `stopped by ${String(signal.reason)}`, {
    hint: 'run the same command again: it goes on where it stopped',
  })
}
