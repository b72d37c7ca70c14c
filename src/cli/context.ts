import type { Surroundings } from '../cache/surroundings.js'
import type { Config } from '../config/config.js'
import type { Overrides } from '../config/resolve-settings.js'
import type { RecordStore } from '../records/contract/record-store.js'
import type { SqlDatabase } from '../records/database/sql-database.js'
import type { Reporter } from './output/reporter.js'

/** What every command is handed. Nothing in it is opened before a command asks for it; all is closed when it ends. */
export interface CliContext extends Surroundings {
  readonly report: Reporter
  /** Of this dsc, as in package.json. */
  readonly version: string
  /** The file that `--config` names, as it was written. */
  readonly configPath: string | undefined
  /** The words after `--`: a command to run, not dsc's own arguments. */
  readonly commandWords: readonly string[]
  /**
   * Finds and checks the configuration, once per process; `overrides` are the values of the command's own
   * flags. Rejects with CONFIG_INVALID.
   */
  readonly config: (overrides?: Overrides) => Promise<Config>
  /** Opens the configured record once more, for a command that outlives it; the caller closes it. */
  readonly reopenRecord: () => Promise<RecordStore>
  /**
   * Opens the engine of the record that `raw` names, as in `record:`; the caller closes it. A file that is not there is
   * made, or RECORD_UNAVAILABLE where it `mustExist`.
   */
  readonly openDatabase: (raw: string, options: { readonly mustExist: boolean }) => Promise<SqlDatabase>
}
