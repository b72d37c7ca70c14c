import { DscError } from '../failure/dsc-error.js'
import type { LogLevel, LogSettings } from './log.js'

/**
 * Reads the log settings from flags and `DSC_LOG`; flags take precedence, and a file alone implies `verbose`. Throws
 * USAGE.
 */
export function readLogSettings(
  flags: { readonly level: LogLevel | undefined; readonly filePath: string | undefined },
  fromEnvironment: string | undefined,
): LogSettings | undefined {
  const { filePath } = flags
  const level = flags.level ?? parseLevel(fromEnvironment) ?? (filePath === undefined ? undefined : 'verbose')
  return level && { level, filePath }
}

function parseLevel(text: string | undefined): LogLevel | undefined {
  if (text === undefined || text === '') return undefined
  if (text === 'verbose' || text === 'debug') return text
  throw new DscError('USAGE', `expected DSC_LOG to be verbose or debug, found "${text}"`, {
    hint: 'DSC_LOG=debug, or unset DSC_LOG',
  })
}
