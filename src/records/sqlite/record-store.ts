import type { RecordStore } from '../contract/record-store.js'
import { createSqlRecordStore } from '../sql-record-store.js'
import { hasGivenUpReserve } from './space-reserve.js'
import { openCurrentSqliteDatabase, openSqliteDatabase } from './sqlite-database.js'

/** Opens the record in the SQLite file `path`: the default for one machine. */
export async function openSqliteRecord(path: string): Promise<RecordStore> {
  return createSqlRecordStore(await openSqliteDatabase(path))
}

/** Opens the record at `path` if it exists and needs no migration, and so without waiting. */
export function openExistingSqliteRecord(path: string): RecordStore | undefined {
  const database = openCurrentSqliteDatabase(path)
  return database && createSqlRecordStore(database)
}

/**
 * Whether an exiting process may leave the record at `path` open: to SQLite that is like a kill. Closing writes the
 * journal into the record and deletes it, which waits for the disk three times, and twice more for the next process's
 * journal. On a nearly full disk it frees the space that the next process needs.
 */
export function mayStayOpen(path: string): boolean {
  return !hasGivenUpReserve(path)
}
