import type { RecordStore } from '../record-store.js'
import { createSqlRecordStore } from '../sql-record-store.js'
import { openCurrentSqliteDatabase, openSqliteDatabase } from './sqlite-database.js'

/** Opens the record in the SQLite file `path`: the default for one machine. */
export async function openSqliteRecord(path: string): Promise<RecordStore> {
  return createSqlRecordStore(await openSqliteDatabase(path))
}

/** Opens the record in `path` if it is there and needs no migration: then nothing is waited for. */
export function openExistingSqliteRecord(path: string): RecordStore | undefined {
  const database = openCurrentSqliteDatabase(path)
  return database && createSqlRecordStore(database)
}
