import type { RecordStore } from '../record-store.js'
import { createSqlRecordStore } from '../sql-record-store.js'
import { openSqliteDatabase } from './sqlite-database.js'

/** Opens the record in the SQLite file `path`: the default for one machine. */
export async function openSqliteRecord(path: string): Promise<RecordStore> {
  return createSqlRecordStore(await openSqliteDatabase(path))
}
