import type { ClusterApi } from '../agent/calls/cluster-api.js'
import type { NodeSurroundings } from '../cache/api/node-api.js'
import type { Config, RecordLocation } from '../config/config.js'
import type { Overrides } from '../config/resolve-settings.js'
import type { RecordStore } from '../records/contract/record-store.js'
import type { SqlDatabase } from '../records/database/sql-database.js'
import type { Reporter } from './output/reporter.js'

/** The context of every command. Opens things only when a command asks, and closes all of them at its end. */
export interface CliContext extends NodeSurroundings {
  readonly report: Reporter
  /** The version of this dsc, as in package.json. */
  readonly version: string
  /** The path given to `--config`, as written. */
  readonly configPath: string | undefined
  /** The words after `--`: a command to run, not dsc's own arguments. */
  readonly commandWords: readonly string[]
  /**
   * Finds and checks the configuration, once per process; `overrides` are the values of the command's own flags.
   * Rejects with CONFIG_INVALID.
   */
  readonly config: (overrides?: Overrides) => Promise<Config>
  /** Opens the configured record again, for a command that outlives the first connection; the caller closes it. */
  readonly reopenRecord: () => Promise<RecordStore>
  /** Opens what commands ask of other nodes: with the agents' token, or by the service of this one. */
  readonly openCluster: () => Promise<ClusterApi>
  /** Reads an argument that names a record, in the form of `record:`. */
  readonly locateRecord: (raw: string) => Promise<RecordLocation>
  /**
   * Opens the database of the record that `raw` names, in the form of `record:`; the caller closes it. Creates a
   * missing file, or rejects with RECORD_UNAVAILABLE if it `mustExist`.
   */
  readonly openDatabase: (raw: string, options: { readonly mustExist: boolean }) => Promise<SqlDatabase>
}
