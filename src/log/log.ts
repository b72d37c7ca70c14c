import { appendFileSync, openSync } from 'node:fs'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { DscError } from '../failure/dsc-error.js'
import { redactText } from '../failure/redact.js'
import { isTerminal, writeAll } from '../platform/standard-streams.js'

/** `verbose`: requests, retries, the time of each phase. `debug`: also each SQL statement. */
export type LogLevel = 'verbose' | 'debug'

/** Level and destination of the log. */
export interface LogSettings {
  readonly level: LogLevel
  /** Lines are appended to this file; undefined: stderr. */
  readonly filePath: string | undefined
}

/** Key under which threads find their settings. */
const KEY = 'dsc.log'

let settings = getEnvironmentData(KEY) as LogSettings | undefined
let file: number | undefined

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

/**
 * Starts logging in this thread and in threads that it starts from now on. Throws USAGE if the file is not writable.
 */
export function startLog(wanted: LogSettings): void {
  settings = wanted
  setEnvironmentData(KEY, wanted as never)
  if (wanted.filePath !== undefined) openFile(wanted.filePath)
}

/** Whether `log` writes this level: check it before computing an expensive message. */
export function isLogged(level: LogLevel): boolean {
  return settings !== undefined && (level === 'verbose' || settings.level === 'debug')
}

/** Whether messages for people on stderr should also go to the log. */
export function isLoggedToFile(): boolean {
  return settings?.filePath !== undefined
}

/** Writes a line with the time, without passwords and signatures, if its level is enabled. */
export function log(level: LogLevel, sentence: string): void {
  if (settings === undefined || !isLogged(level)) return
  const line = `${new Date().toISOString()} ${level} ${redactText(sentence)}\n`
  if (settings.filePath === undefined) {
    writeAll('stderr', isTerminal('stderr') ? `\r\x1b[2K${line}` : line) // may replace a line of progress
    return
  }
  try {
    appendFileSync(file ?? openFile(settings.filePath), line)
  } catch {
    // A full disk: a failure to log must not undo the work.
  }
}

/** Runs `work` and logs how long it took. */
export async function logPhase<Value>(phase: string, work: () => Promise<Value>): Promise<Value> {
  if (!isLogged('verbose')) return work()
  const beganMs = performance.now()
  try {
    return await work()
  } finally {
    log('verbose', `${phase}: ${formatElapsed(beganMs)}`)
  }
}

/** `12.3 ms` since `beganMs` on the clock of `performance.now`. */
export function formatElapsed(beganMs: number): string {
  return `${(performance.now() - beganMs).toFixed(1)} ms`
}

function openFile(path: string): number {
  try {
    file = openSync(path, 'a', 0o600)
    return file
  } catch (error) {
    throw new DscError('USAGE', `cannot write the log ${path}: ${(error as NodeJS.ErrnoException).code}`, {
      hint: '--log-file <file in a folder that this user may write>',
      cause: error,
    })
  }
}
