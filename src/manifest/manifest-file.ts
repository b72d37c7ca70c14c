import { accessSync, closeSync, constants, existsSync, lstatSync, openSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { DscError } from '../failure/dsc-error.js'
import { isRefused } from '../platform/disk-failure.js'
import { requireRegularFile } from '../platform/regular-file.js'
import { keyToPath } from './key-to-path.js'

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
 * After kill -9 every committed batch is there. After a power cut the last ones may be missing, which costs
 * fetching again, or may name files whose bytes never reached the disk, which the boot id in the settings tells.
 */
const SYNCHRONOUS = 'synchronous = NORMAL'

/** Readers of an arriving copy hold its manifest for moments; a publication waits for them so long, ms. */
const MAX_LOOK_MS = 30_000
const LOOK_PAUSE_MS = 2

/** Name of the manifest in a copy directory. */
export function manifestPath(copyDirectory: string): string {
  return join(copyDirectory, 'manifest.db')
}

/** Creates the file of an empty manifest, throwing away what was there. Only Manifest opens these files. */
export function createManifestFile(copyDirectory: string): Database.Database {
  const path = manifestPath(copyDirectory)
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true })
  closeSync(openSync(path, 'wx', 0o644)) // not by SQLite, which would follow a link
  const db = new Database(path, { fileMustExist: true })
  requireSameFile(db, path)
  db.pragma('synchronous = OFF') // an empty manifest that a power cut spoils is made again
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

/** Opens the file of a published copy's manifest, which nobody writes any more. */
export function openPublishedFile(copyDirectory: string): Database.Database {
  return openChecked(manifestPath(copyDirectory), { readonly: true })
}

/**
 * Whether a directory has a manifest of this format that opens, that this user may go on filling, and all of whose
 * keys can be paths; anything else is thrown away and listed again.
 */
export function hasUsableManifest(copyDirectory: string): boolean {
  if (!existsSync(manifestPath(copyDirectory))) return false
  try {
    accessSync(manifestPath(copyDirectory), constants.W_OK)
    const db = openManifestFile(copyDirectory)
    try {
      return hasPathsOnly(db)
    } finally {
      db.close()
    }
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

/** What SQLite cannot read in a manifest is damage that the user should hear of; anything else comes back as it is. */
export function describeManifestFailure(error: unknown, copyDirectory: string): unknown {
  if (!isOfSqlite(error)) return error
  return new DscError(
    'COPY_DAMAGED',
    `${manifestPath(copyDirectory)}: expected a manifest, found what SQLite cannot read (${error.message})`,
    { hint: 'evict the copy and prepare it again', cause: error },
  )
}

/**
 * Whether SQLite says so, told by its code: SQLite's addon knows one class of errors, which in `dsc prepare` is that of
 * the short way's bundle.
 */
export function isOfSqlite(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_')
}

/** Folds the journal into its file. SQLite's own timeout does not hold for this, so it is tried again. */
export async function foldJournal(db: Database.Database): Promise<void> {
  for (const endMs = performance.now() + MAX_LOOK_MS; ; ) {
    try {
      db.pragma('journal_mode = DELETE')
      return
    } catch (error) {
      // Of several kinds: a reader may be mending the journal of a stager that was killed (SQLITE_BUSY_RECOVERY).
      const isLocked = isOfSqlite(error) && error.code.startsWith('SQLITE_BUSY')
      if (!isLocked || performance.now() > endMs) throw error
      await sleep(LOOK_PAUSE_MS)
    }
  }
}

/** SQLite opens by names what is held by a descriptor: refuses what somebody put there in between. */
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
    {
      hint: 'evict the copy and prepare it again',
    },
  )
}

function configure(db: Database.Database): void {
  db.pragma('busy_timeout = 10000')
  db.pragma('journal_mode = WAL')
  db.pragma('cache_size = -16384')
}
