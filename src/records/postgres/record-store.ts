import type { RecordStore } from '../contract/record-store.js'
import { createSqlRecordStore } from '../sql-record-store.js'
import { openPostgresDatabase, type PostgresOptions } from './postgres-database.js'

/** Opens the record in the PostgreSQL database at `url`, for any number of machines. */
export async function openPostgresRecord(url: string, options: PostgresOptions = {}): Promise<RecordStore> {
  return createSqlRecordStore(await openPostgresDatabase(url, options))
}
