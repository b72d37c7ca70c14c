import { accessSync, constants, copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'

/** Maximum attempts to copy a busy record until two looks at it agree. */
const MAX_TRIES = 5

/** Whether this user can read the record but not write it: SQLite's WAL mode needs to write even to read. */
export function isForReadingOnly(path: string): boolean {
  return (
    existsSync(path) &&
    mayUse(path, constants.R_OK) &&
    !(mayUse(path, constants.W_OK) && mayUse(dirname(path), constants.W_OK))
  )
}

/** Opens a private snapshot of the record; writes are refused. */
export function openCopyForReading(path: string): Database.Database {
  const folder = mkdtempSync(join(tmpdir(), 'dsc-record-'))
  try {
    const copy = join(folder, 'record.db')
    for (let tries = 1; ; tries += 1) {
      const before = describe(path)
      copyFileSync(path, copy)
      if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${copy}-wal`)
      if (tries === MAX_TRIES || describe(path) === before) break
    }
    const connection = new Database(copy)
    connection.pragma('journal_mode = DELETE') // merges the write-ahead log
    connection.pragma('query_only = ON')
    return connection
  } finally {
    rmSync(folder, { recursive: true }) // the open file outlives its name
  }
}

function describe(path: string): string {
  return [path, `${path}-wal`]
    .map((file) => statSync(file, { throwIfNoEntry: false, bigint: true }))
    .map((stats) => (stats ? `${stats.ino} ${stats.size} ${stats.mtimeNs}` : '-'))
    .join()
}

function mayUse(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false
  }
}
