import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { openOrClose, openOrCloseNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { LOOK_MS, pause } from '../../platform/poll.js'
import { requireRegularFile } from '../../platform/regular-file.js'
import { makeFolder } from '../../platform/shared-folder.js'
import type { ChangeWait } from '../contract/record-store.js'
import { migrate } from '../database/migrate.js'
import { schemaMigrations } from '../database/schema.js'
import type { Durability, SqlDatabase, SqlRow, SqlTransaction } from '../database/sql-database.js'
import { isForReadingOnly, openCopyForReading } from './copy-for-reading.js'
import { giveUpReserve, keepReserve } from './space-reserve.js'

/** How long a transaction waits for earlier ones: far above 64 processes at a few milliseconds each. */
const BUSY_TIMEOUT_MS = 60_000

/** Pages to return to the file system at a time, in one transaction. */
const GIVEN_BACK_PAGES = 2000

/** Maximum pages of a journal to leave behind: 0.4 ms to read. */
const MAX_LEFT_PAGES = 200

/** Migrations of SQLite from nothing to the newest schema. */
export const SQLITE_MIGRATIONS = schemaMigrations({
  text: 'TEXT',
  integer: 'INTEGER',
  sequenceKey: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  nowMs: `CAST(unixepoch('subsec') * 1000 AS INTEGER)`,
  sourceUrl: `json_extract(source, '$.source')`,
  generated: 'VIRTUAL', // SQLite adds no other kind to a table
})

/**
 * Opens (or creates) the record file `path` in WAL mode and brings it to the current schema.
 * Every write is a BEGIN IMMEDIATE transaction, so writers queue up instead of failing half-way.
 * Throws RECORD_UNAVAILABLE when the file cannot be opened, RECORD_NEWER when a newer dsc wrote it.
 */
export async function openSqliteDatabase(path: string, migrations = SQLITE_MIGRATIONS): Promise<SqlDatabase> {
  const location = `sqlite://${path}`
  return openOrClose(async (closers) => {
    const connection = explainFailures(location, () => connect(path))
    closers.add(() => connection.close())
    const database = createDatabase(connection, location)
    if (!explainFailures(location, () => isCurrent(connection, migrations.length))) {
      await database.write('durable', 'all', (open) => migrate(open, migrations, location))
    }
    return database
  })
}

/**
 * Opens a record file that exists and has the current schema; undefined otherwise. Closing is optional: the journal
 * stays short, because the next process reads it first.
 */
export function openCurrentSqliteDatabase(path: string): SqlDatabase | undefined {
  if (!existsSync(path)) return undefined
  return openOrCloseNow((closers) => {
    const connection = connect(path)
    closers.add(() => connection.close())
    connection.pragma(`wal_autocheckpoint = ${MAX_LEFT_PAGES}`)
    if (isCurrent(connection, SQLITE_MIGRATIONS.length)) return createDatabase(connection, `sqlite://${path}`)
    connection.close()
    return undefined
  })
}

function createDatabase(connection: Database.Database, location: string): SqlDatabase {
  const transaction = prepareStatements(connection)
  // A connection holds one transaction at a time: this process's callers take turns.
  let turn: Promise<unknown> = Promise.resolve()
  const runInTurn = <T>(begin: () => void, work: (transaction: SqlTransaction) => Promise<T>): Promise<T> => {
    const result = turn.then(async () => {
      try {
        begin()
        const value = await work(transaction)
        connection.exec('COMMIT')
        return value
      } catch (error) {
        throw explainFailure(location, error)
      } finally {
        if (connection.inTransaction) connection.exec('ROLLBACK')
      }
    })
    turn = result.catch(() => undefined)
    return result
  }
  const read: SqlDatabase['read'] = (work) => runInTurn(() => connection.exec('BEGIN'), work)
  let durability: Durability | undefined
  return {
    location,
    isReadOnly: connection.pragma('query_only', { simple: true }) === 1,
    write: (wanted, _scope, work) =>
      runInTurn(() => {
        if (wanted !== durability)
          connection.pragma(`synchronous = ${wanted === 'durable' ? 'FULL' : 'NORMAL'}`)
        durability = wanted
        connection.exec('BEGIN IMMEDIATE')
      }, work),
    read,
    all: (sql, parameters) => read((snapshot) => snapshot.all(sql, parameters)),
    map: (sql, parameters, make) => read((snapshot) => snapshot.map(sql, parameters, make)),
    nowMs: Date.now,
    waitForChange: (wait) => waitForCommit(connection, wait),
    giveBackRoom: () =>
      runInTurn(
        () => connection.exec('BEGIN IMMEDIATE'),
        async () => {
          connection.pragma(`incremental_vacuum(${GIVEN_BACK_PAGES})`)
        },
      ),
    close: async () => {
      await turn
      connection.close()
      keepReserve(connection.name)
    },
  }
}

/** In the bundle of a warm `dsc prepare`, `Database` is that of `built-in-sqlite.ts` (`scripts/bundles.mjs`). */
function connect(path: string): Database.Database {
  for (const suffix of ['', '-wal', '-shm', '-journal']) requireRegularFile(path + suffix)
  if (isForReadingOnly(path)) return openCopyForReading(path)
  if (!existsSync(path)) makeFolder(dirname(path))
  giveUpReserve(path)
  return openOrCloseNow((closers) => {
    const connection = new Database(path, { timeout: BUSY_TIMEOUT_MS })
    // The garbage collector would close it later, and SQLite loses locks where another copy of it has the file open.
    closers.add(() => connection.close())
    // Only when the file is new: setting them again would write to it at every opening, and wait for others.
    if (connection.pragma('journal_mode', { simple: true }) !== 'wal') {
      connection.pragma('auto_vacuum = INCREMENTAL') // allows returning the space of pruned history
      connection.pragma('journal_mode = WAL')
    }
    connection.pragma('foreign_keys = ON')
    return connection
  })
}

/** Whether the schema needs no migration; reads only, so that opening a record never queues behind a writer. */
function isCurrent(connection: Database.Database, newestVersion: number): boolean {
  const table = connection.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'dsc_schema'`).get()
  if (table === undefined) return false
  const row = connection.prepare('SELECT max(version) AS version FROM dsc_schema').get() as {
    version: number | null
  }
  return row.version === newestVersion
}

function prepareStatements(connection: Database.Database): SqlTransaction {
  const statements = new Map<string, Database.Statement<unknown[], SqlRow>>()
  const prepare = (sql: string) => {
    let statement = statements.get(sql)
    if (statement === undefined) {
      statement = connection.prepare<unknown[], SqlRow>(sql)
      statements.set(sql, statement)
    }
    return statement
  }
  return {
    all: async (sql, parameters = []) => prepare(sql).all(...parameters),
    map: async (sql, parameters, make) => Array.from(prepare(sql).iterate(...parameters), make),
    get: async (sql, parameters = []) => prepare(sql).get(...parameters),
    run: async (sql, parameters = []) => {
      const statement = prepare(sql)
      return statement.run(...parameters).changes
    },
    post: (sql, parameters = []) => {
      prepare(sql).run(...parameters)
    },
  }
}

function explainFailures<T>(location: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw explainFailure(location, error)
  }
}

const UNUSABLE =
  /^(SQLITE_(CANTOPEN|IOERR|READONLY|PERM|NOTADB|CORRUPT|BUSY|PROTOCOL|AUTH)|EACCES|ENOENT|EROFS|ENOTDIR|EEXIST)/

/** Turns a failure of SQLite itself into one the user understands; returns any other error unchanged. */
function explainFailure(location: string, error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'SQLITE_FULL') {
    return new DscError('DISK_FULL', `no space left for the record ${location}`, {
      hint: 'free space on its file system, or move the record (`record:` in dsc.yaml)',
      cause: error,
    })
  }
  if (code === 'SQLITE_IOERR_SHMSIZE') {
    return new DscError('DISK_FULL', `no space is left for this user beside the record ${location}`, {
      hint: 'delete another file there: what is free is the share that the file system keeps for root. With room for users, the disk fails: dmesg',
      cause: error,
    })
  }
  if (!UNUSABLE.test(code)) return error
  return new DscError(
    'RECORD_UNAVAILABLE',
    `cannot use the record ${location}: ${(error as Error).message} (${code})`,
    { hint: hintFor(code), cause: error },
  )
}

function hintFor(code: string): string {
  if (/^(SQLITE_READONLY|SQLITE_CANTOPEN|EACCES|EROFS)/.test(code))
    return 'ask the service of the node at its door (dsc agent), or set cache.root and record: to your own'
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code))
    return 'move the file away and run dsc cleanup: it makes a new record of the copies on disk; locks and leases are lost'
  return 'dsc doctor'
}

/**
 * Waits until this or another connection has committed a change to the file. A look takes some microseconds, as SQLite
 * counts commits in shared memory: an idle screen reads nothing. Who waits for one copy polls, as SQLite cannot tell
 * which has changed, and a stager's every report would wake all who wait for others.
 */
async function waitForCommit(
  connection: Database.Database,
  { pollMs, atMostMs, about, signal }: ChangeWait,
): Promise<void> {
  if (about !== undefined) return pause(pollMs, signal)
  const endMs = performance.now() + atMostMs
  const before = countCommits(connection)
  do await pause(Math.min(LOOK_MS.progress, Math.max(0, endMs - performance.now())), signal)
  while (performance.now() < endMs && signal?.aborted !== true && countCommits(connection) === before)
}

/** Others' commits and this connection's changed rows; undefined where the file cannot be read. */
function countCommits(connection: Database.Database): string | undefined {
  try {
    const others = connection.pragma('data_version', { simple: true })
    const { own } = connection.prepare('SELECT total_changes() AS own').get() as { readonly own: number }
    return `${others} ${own}`
  } catch {
    return undefined // closed, or its disk fails: the next reading says so
  }
}
