import { accessSync, constants, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { DscError } from '../failure/dsc-error.js'
import { isRefused } from './disk-failure.js'

/** Version of the format of `manifest.db`; raise it with every change of the schema. */
const MANIFEST_FORMAT = 1

const SCHEMA = `
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- state: 0 = to fetch, 1 = written and proven, 2 = of another stripe, never here. digest: of an object in one part. part_bytes: null until planned.
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

/** Name of the manifest in a copy directory. */
export function manifestPath(copyDirectory: string): string {
  return join(copyDirectory, 'manifest.db')
}

/** Creates an empty manifest, throwing away what was there. */
export function createManifest(copyDirectory: string): Database.Database {
  const path = manifestPath(copyDirectory)
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true })
  const db = new Database(path)
  configure(db)
  db.exec(SCHEMA)
  db.pragma(`user_version = ${MANIFEST_FORMAT}`)
  return db
}

/** Opens a manifest that is being filled. */
export function openManifest(copyDirectory: string): Database.Database {
  const db = openChecked(manifestPath(copyDirectory), {})
  configure(db)
  return db
}

/** Opens the manifest of a published copy, which nobody writes any more. */
export function openPublishedManifest(copyDirectory: string): Database.Database {
  return openChecked(manifestPath(copyDirectory), { readonly: true })
}

/** As `openPublishedManifest`; undefined when there is none of this format that opens. */
export function findPublishedManifest(copyDirectory: string): Database.Database | undefined {
  try {
    return openPublishedManifest(copyDirectory)
  } catch (error) {
    if (error instanceof Database.SqliteError || error instanceof DscError) return undefined
    throw error
  }
}

/**
 * Whether a directory has a manifest of this format that opens and that this user may go on filling; anything else
 * is to be thrown away.
 */
export function hasUsableManifest(copyDirectory: string): boolean {
  if (!existsSync(manifestPath(copyDirectory))) return false
  try {
    accessSync(manifestPath(copyDirectory), constants.W_OK)
    openManifest(copyDirectory).close()
    return true
  } catch (error) {
    if (isRefused(error) || error instanceof Database.SqliteError || error instanceof DscError) return false
    throw error
  }
}

/** What SQLite cannot read in a manifest is damage that the user should hear of; anything else comes back as it is. */
export function describeManifestFailure(error: unknown, copyDirectory: string): unknown {
  if (!(error instanceof Database.SqliteError)) return error
  return new DscError(
    'COPY_DAMAGED',
    `${manifestPath(copyDirectory)}: expected a manifest, found what SQLite cannot read (${error.message})`,
    { hint: 'evict the copy and prepare it again', cause: error },
  )
}

function openChecked(path: string, options: Database.Options): Database.Database {
  const db = new Database(path, { fileMustExist: true, ...options })
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

/**
 * After kill -9 every committed batch is there. After a power cut the last ones may be missing, which costs
 * fetching again, or may name files whose bytes never reached the disk, which the boot id in the settings tells.
 */
function configure(db: Database.Database): void {
  db.pragma('busy_timeout = 10000')
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = NORMAL')
  db.pragma('cache_size = -16384')
}

/** Reads a setting of the manifest. */
export function readSetting(db: Database.Database, name: string): string | undefined {
  const row = db.prepare<[string], { value: string }>('SELECT value FROM setting WHERE name = ?').get(name)
  return row?.value
}

/** Writes a setting of the manifest. */
export function writeSetting(db: Database.Database, name: string, value: string): void {
  db.prepare('INSERT INTO setting VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value').run(
    name,
    value,
  )
}
