import type { SqlTransaction } from '../database/sql-database.js'

/** One change of the record in progress: its transaction, and the one time for everything it writes. */
export interface RecordWrite {
  readonly transaction: SqlTransaction
  /** Unix epoch, ms. */
  readonly nowMs: number
}
