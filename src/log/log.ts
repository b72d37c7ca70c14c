import { appendFileSync, openSync } from 'node:fs'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { DscError } from '../failure/dsc-error.js'
import { redactText } from '../failure/redact.js'
import { isTerminal, writeAll } from '../platform/standard-streams.js'

/** `verbose`: requests, retries, how long each phase took. `debug`: each statement of SQL, too. */
export type LogLevel = 'verbose' | 'debug'

/** What is logged, and where to. */
export interface LogSettings {
  readonly level: LogLevel
  /** Lines are added to this file; undefined: stderr. */
  readonly filePath: string | undefined
}

/** What threads find their settings by. */
const KEY = 'dsc.log'

let settings = getEnvironmentData(KEY) as LogSettings | undefined
let file: number | undefined

/** Logs from here on, in this thread and in those that it starts. Throws USAGE where the file cannot be written. */
export function startLog(wanted: LogSettings): void {
  settings = wanted
  setEnvironmentData(KEY, wanted as never)
  if (wanted.filePath !== undefined) openFile(wanted.filePath)
}

/** Whether anybody reads what `log` is told of this level: for what costs something to say. */
export function isLogged(level: LogLevel): boolean {
  return settings !== undefined && (level === 'verbose' || settings.level === 'debug')
}

/** Whether what people are told on stderr should be said in the log, too. */
export function isLoggedToFile(): boolean {
  return settings?.filePath !== undefined
}

/** Writes a line with the time, without passwords and signatures, if anybody asked for its level. */
export function log(level: LogLevel, sentence: string): void {
  if (settings === undefined || !isLogged(level)) return
  const line = `${new Date().toISOString()} ${level} ${redactText(sentence)}\n`
  if (settings.filePath === undefined) {
    writeAll('stderr', isTerminal('stderr') ? `\r\x1b[2K${line}` : line) // a line of progress may stand there
    return
  }
  try {
    appendFileSync(file ?? openFile(settings.filePath), line)
  } catch {
    // A full disk: what cannot be said must not undo what is done.
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
