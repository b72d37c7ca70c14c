import type { Config } from '../config/config.js'
import type { Overrides } from '../config/resolve-settings.js'
import type { Dataset } from '../model/dataset.js'
import type { RecordStore } from '../records/record-store.js'
import type { SqlDatabase } from '../records/sql-database.js'
import type { Cache } from '../stage/cache.js'
import type { Source } from '../stage/source.js'
import type { Reporter } from './reporter.js'

/** What every command is handed. Nothing in it is opened before a command asks for it. */
export interface CliContext {
  readonly report: Reporter
  /** Aborts on SIGINT, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal
  /** The words after `--`: a command to run, not dsc's own arguments. */
  readonly commandWords: readonly string[]
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Wall clock, Unix epoch in milliseconds. */
  readonly nowMs: () => number
  /**
   * Finds and checks the configuration, once per process; `overrides` are the values of the command's own
   * flags. Rejects with CONFIG_INVALID.
   */
  readonly config: (overrides?: Overrides) => Promise<Config>
  /** Opens the configured record, once per process; it is closed when the command ends. */
  readonly openRecord: () => Promise<RecordStore>
  /** Opens the configured record once more, for a command that outlives it; the caller closes it. */
  readonly reopenRecord: () => Promise<RecordStore>
  /** Opens this node's cache over the record. Rejects with CACHE_ROOT_INVALID when the root is unusable. */
  readonly openCache: () => Promise<Cache>
  /** Opens the source of a dataset; the caller closes it. */
  readonly openSource: (dataset: Dataset) => Promise<Source>
  /**
   * Opens the engine of the record that `raw` names, as in `record:`; the caller closes it. A file that is not there is
   * made, or RECORD_UNAVAILABLE where it `mustExist`.
   */
  readonly openDatabase: (raw: string, options: { readonly mustExist: boolean }) => Promise<SqlDatabase>
}
