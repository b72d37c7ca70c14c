import type { Config } from '../config/config.js'
import type { Overrides } from '../config/resolve-settings.js'
import type { RecordStore } from '../records/record-store.js'
import type { Reporter } from './reporter.js'

/** What every command is handed. Nothing in it is opened before a command asks for it. */
export interface CliContext {
  readonly report: Reporter
  /** Aborts on SIGINT, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Wall clock, Unix epoch in milliseconds. */
  readonly nowMs: () => number
  /**
   * Finds and checks the configuration, once per process; `overrides` are the values of the command's own
   * flags. Rejects with CONFIG_INVALID.
   */
  readonly config: (overrides?: Overrides) => Promise<Config>
  /** Opens the record that the configuration names; the command closes it. Rejects with RECORD_UNAVAILABLE. */
  readonly openRecord: () => Promise<RecordStore>
}
