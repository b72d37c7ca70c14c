import type { Reporter } from './reporter.js'

/** What every command is handed. Nothing in it is opened before a command asks for it. */
export interface CliContext {
  readonly report: Reporter
  /** Aborts on SIGINT, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Wall clock, Unix epoch in milliseconds. */
  readonly nowMs: () => number
}
