import type { SqlTransaction } from '../database/sql-database.js'

/** One change of the record while it is made: its transaction, and the one time that all it writes bears. */
export interface RecordWrite {
  readonly transaction: SqlTransaction
  /** Unix epoch, ms. */
  readonly nowMs: number
}
