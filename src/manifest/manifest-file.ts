import { accessSync, closeSync, constants, existsSync, lstatSync, openSync, rmSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { atEndNow } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import { isRefused } from '../platform/disk-failure.js'
import { requireRegularFile } from '../platform/regular-file.js'
import { keyToPath } from './key-to-path.js'
import { manifestPath } from './manifest-path.js'

/** Version of the format of `manifest.db`; raise it with every change of the schema. */
const MANIFEST_FORMAT = 1

const SCHEMA = `
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- state: STATE_CODES. digest: of an object in one part. part_bytes: null until planned.
CREATE TABLE object (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  size_bytes INTEGER NOT NULL,
  etag TEXT,
  version_id TEXT,
  checksum_algorithm TEXT,
  checksum_value TEXT,
  modified_at_ms INTEGER NOT NULL,
  part_bytes INTEGER,
  facts TEXT,
  state INTEGER NOT NULL DEFAULT 0,
  verified_by TEXT,
  digest TEXT
);
-- Finished parts of objects that have several. proof: digest the source's checksum is proven with, when not digest.
CREATE TABLE part (
  object_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  digest TEXT NOT NULL,
  proof TEXT,
  PRIMARY KEY (object_id, number)
) WITHOUT ROWID;
`

/**
 * After kill -9 every committed batch is there. After a power cut the last batches may be missing, which costs fetching
 * again, or may name files whose bytes never reached the disk; the boot id in the settings reveals that.
 */
const SYNCHRONOUS = 'synchronous = NORMAL'

/** How long a publication waits for readers of an arriving copy, which hold its manifest only for moments, in ms. */
const MAX_LOOK_MS = 30_000
const LOOK_PAUSE_MS = 2

/** Of the files that SQLite keeps beside a database in WAL mode. */
const JOURNAL_SUFFIXES = ['-wal', '-shm']

/** Creates an empty manifest file and discards the old one. Only Manifest opens these files. */
export function createManifestFile(copyDirectory: string): Database.Database {
  const path = manifestPath(copyDirectory)
  for (const suffix of ['', '-journal', ...JOURNAL_SUFFIXES]) rmSync(path + suffix, { force: true })
  closeSync(openSync(path, 'wx', 0o644)) // not by SQLite, which would follow a link
  const db = new Database(path, { fileMustExist: true })
  requireSameFile(db, path)
  db.pragma('synchronous = OFF') // an empty manifest spoilt by a power cut is simply created again
  configure(db)
  db.exec(`BEGIN; ${SCHEMA} PRAGMA user_version = ${MANIFEST_FORMAT}; COMMIT`)
  db.pragma(SYNCHRONOUS)
  return db
}

/** Opens the file of a manifest that is being filled. */
export function openManifestFile(copyDirectory: string): Database.Database {
  const db = openChecked(manifestPath(copyDirectory), {})
  configure(db)
  db.pragma(SYNCHRONOUS)
  return db
}

/** Opens the manifest file of a published copy, which is never written again. */
export function openPublishedFile(copyDirectory: string): Database.Database {
  return openChecked(manifestPath(copyDirectory), { readonly: true })
}

/**
 * Whether a directory has a manifest of this format that opens, that this user may go on filling, and whose keys can
 * all be paths; anything else is discarded and listed again.
 */
export function hasUsableManifest(copyDirectory: string): boolean {
  if (!existsSync(manifestPath(copyDirectory))) return false
  try {
    accessSync(manifestPath(copyDirectory), constants.W_OK)
    const db = openManifestFile(copyDirectory)
    using _ = atEndNow(() => db.close())
    return hasPathsOnly(db)
  } catch (error) {
    if (isRefused(error) || isUnusable(error)) return false
    throw error
  }
}

function hasPathsOnly(db: Database.Database): boolean {
  for (const key of db.prepare<[], string>('SELECT key FROM object').pluck().iterate())
    if (keyToPath(key).problem !== null) return false
  return true
}

/** Whether opening failed because there is no manifest of this format. */
export function isUnusable(error: unknown): boolean {
  // better-sqlite3 throws a TypeError where the folder itself is gone.
  return isOfSqlite(error) || error instanceof DscError || error instanceof TypeError
}

/** Reports what SQLite cannot read in a manifest as damage, for the user to see; returns anything else unchanged. */
export function describeManifestFailure(error: unknown, copyDirectory: string): unknown {
  if (!isOfSqlite(error)) return error
  return new DscError(
    'COPY_DAMAGED',
    `${manifestPath(copyDirectory)}: expected a manifest, found what SQLite cannot read (${error.message})`,
    { hint: 'evict the copy and prepare it again', cause: error },
  )
}

/**
 * Whether the error is SQLite's, told by its code: SQLite's addon knows one class of errors, which in `dsc prepare` is
 * that of the fast path's bundle.
 */
export function isOfSqlite(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_')
}

/**
 * Folds the journal into the manifest, so that it is one file. No other process may be filling it. Waits for readers.
 * Every attempt opens the file again: a connection whose attempt failed halfway takes its journal for folded, while the
 * file still says otherwise.
 */
export async function foldJournal(copyDirectory: string): Promise<void> {
  const path = manifestPath(copyDirectory)
  for (const endMs = performance.now() + MAX_LOOK_MS; ; ) {
    requireRegularFile(path)
    // Without a timeout: SQLite would block this thread, whose own reader it may wait for.
    const db = new Database(path, { fileMustExist: true, timeout: 0 })
    try {
      requireSameFile(db, path)
      db.pragma('journal_mode = DELETE')
      break
    } catch (error) {
      // There are several such codes: a reader may be mending the journal of a killed stager (SQLITE_BUSY_RECOVERY).
      const isLocked = isOfSqlite(error) && error.code.startsWith('SQLITE_BUSY')
      if (!isLocked || performance.now() > endMs) throw error
    } finally {
      db.close()
    }
    await sleep(LOOK_PAUSE_MS)
  }
  // Between removing its journal and saying so in the file SQLite lets readers in, who leave an empty one behind.
  for (const suffix of JOURNAL_SUFFIXES) rmSync(path + suffix, { force: true })
}

/** Refuses a file that was replaced in between: SQLite opens by name, while the caller holds a descriptor. */
function requireSameFile(db: Database.Database, path: string): void {
  const [main] = db.pragma('database_list') as readonly { readonly file: string }[]
  const own = lstatSync(path, { throwIfNoEntry: false })
  const opened = statSync(main!.file, { throwIfNoEntry: false })
  if (own?.isFile() && own.ino === opened?.ino && own.dev === opened.dev) return
  db.close()
  throw new DscError('CACHE_ROOT_INVALID', `${main!.file} was put in the place of a manifest of this cache`, {
    hint: 'dsc cleanup',
  })
}

function openChecked(path: string, options: Database.Options): Database.Database {
  requireRegularFile(path)
  const db = new Database(path, { fileMustExist: true, ...options })
  requireSameFile(db, path)
  const format: unknown = db.pragma('user_version', { simple: true })
  if (format === MANIFEST_FORMAT) return db
  db.close()
  throw new DscError(
    'COPY_DAMAGED',
    `${path}: expected manifest format ${MANIFEST_FORMAT}, found ${format}`,
    { hint: 'evict the copy and prepare it again' },
  )
}

function configure(db: Database.Database): void {
  db.pragma('busy_timeout = 10000')
  db.pragma('journal_mode = WAL')
  db.pragma('cache_size = -16384')
}
