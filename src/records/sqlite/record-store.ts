import type { RecordStore } from '../contract/record-store.js'
import { createSqlRecordStore } from '../sql-record-store.js'
import { hasGivenUpReserve } from './space-reserve.js'
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

/**
 * Whether a process that ends now may leave the record in `path` open: SQLite takes that as it takes a kill. Closing
 * writes the journal into the record and deletes it, which waits for the disk three times, and twice more for the next
 * one's journal; on a nearly full disk it frees the room that the next one needs.
 */
export function mayStayOpen(path: string): boolean {
  return !hasGivenUpReserve(path)
}
