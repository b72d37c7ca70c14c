import {
  chmodSync,
  constants,
  copyFileSync,
  linkSync,
  lstatSync,
  mkdirSync,
  rmSync,
  type Stats,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type Database from 'better-sqlite3'
import { filesDirectory } from './cache-layout.js'
import { checkObject } from './check-object.js'
import { findPublishedManifest, manifestPath } from './manifest-db.js'
import type { ObjectRow } from './object-row.js'
import { throwIfStopped } from './retry.js'

const BATCH_ROWS = 500

interface ReusableRow {
  readonly id: number
  readonly key: string
  readonly size_bytes: number
  readonly old_id: number
}

/**
 * Takes objects that did not change since the previous copy from there: same key, size and etag. By reflink where
 * the file system can, else by hard link (both copies are read-only), else by copying. A file that may have been
 * written since that copy was published is read and compared first.
 */
export async function reusePrevious(
  db: Database.Database,
  copyDirectory: string,
  previousCopyDirectory: string,
  signal: AbortSignal,
): Promise<{ readonly reusedFiles: number; readonly reusedBytes: number }> {
  const counts = { reusedFiles: 0, reusedBytes: 0 }
  const manifest = findPublishedManifest(previousCopyDirectory)
  if (manifest === undefined) return counts
  const previous = describePrevious(previousCopyDirectory, manifest)
  try {
    db.prepare('ATTACH ? AS previous').run(manifestPath(previousCopyDirectory))
    const page = db.prepare<[number], ReusableRow>(
      `SELECT mine.id, mine.key, mine.size_bytes, old.id AS old_id FROM object AS mine
       JOIN previous.object AS old ON old.key = mine.key AND old.size_bytes = mine.size_bytes
         AND old.etag = mine.etag AND old.version_id IS mine.version_id AND old.state = 1
       WHERE mine.id > ? AND mine.state = 0 AND mine.part_bytes IS NULL ORDER BY mine.id LIMIT ${BATCH_ROWS}`,
    )
    const take = db.prepare(
      `UPDATE object SET (state, part_bytes, facts, verified_by, digest) =
         (SELECT 1, part_bytes, facts, verified_by, digest FROM previous.object WHERE id = ?) WHERE id = ?`,
    )
    const takeParts = db.prepare(
      'INSERT INTO part SELECT ?, number, digest, proof FROM previous.part WHERE object_id = ?',
    )
    for (let rows = page.all(0); rows.length > 0; rows = page.all(rows.at(-1)!.id)) {
      const taken: ReusableRow[] = []
      for (const row of rows) {
        throwIfStopped(signal)
        const target = join(filesDirectory(copyDirectory), row.key)
        if (await takeObject(previous, row, target, signal)) taken.push(row)
      }
      db.transaction(() => {
        for (const row of taken) {
          take.run(row.old_id, row.id)
          takeParts.run(row.id, row.old_id)
        }
      })()
      counts.reusedFiles += taken.length
      for (const row of taken) counts.reusedBytes += row.size_bytes
      await new Promise(setImmediate) // lets signals and progress through
    }
    db.prepare('DETACH previous').run()
  } finally {
    manifest.close()
  }
  return counts
}

interface PreviousCopy {
  readonly files: string
  readonly manifest: Database.Database
  /** The manifest was finished after the last file was: whoever wrote into a file later left a later time. */
  readonly publishedAtMs: number
  /** An adopted folder: its owner may write into its files, and may have done so while it was adopted. */
  readonly isAdopted: boolean
}

function describePrevious(directory: string, manifest: Database.Database): PreviousCopy {
  const files = filesDirectory(directory)
  return {
    files,
    manifest,
    publishedAtMs: lstatSync(manifestPath(directory)).mtimeMs,
    isAdopted: lstatSync(files, { throwIfNoEntry: false })?.isSymbolicLink() ?? false,
  }
}

/** Whether the file at `target` is the object now. One that is gone, or is not what it was, is fetched instead. */
async function takeObject(
  previous: PreviousCopy,
  row: ReusableRow,
  target: string,
  signal: AbortSignal,
): Promise<boolean> {
  const from = join(previous.files, row.key)
  const stats = lstatSync(from, { throwIfNoEntry: false })
  if (!stats?.isFile() || stats.size !== row.size_bytes) return false
  if (!takeFile(from, target, stats, !previous.isAdopted)) return false
  if (!previous.isAdopted && stats.mtimeMs <= previous.publishedAtMs) return true
  const old = previous.manifest
    .prepare<[number], ObjectRow>('SELECT * FROM object WHERE id = ?')
    .get(row.old_id)!
  if ((await checkObject(previous.manifest, old, target, signal)) === undefined) return true
  rmSync(target)
  return false
}

/** Whether `from` could become `to`. */
function takeFile(from: string, to: string, stats: Stats, mayLink: boolean): boolean {
  mkdirSync(dirname(to), { recursive: true })
  const { COPYFILE_EXCL, COPYFILE_FICLONE_FORCE } = constants
  for (const place of [
    () => copyFileSync(from, to, COPYFILE_FICLONE_FORCE | COPYFILE_EXCL),
    ...(mayLink ? [() => linkSync(from, to)] : []),
    () => copyFileSync(from, to, COPYFILE_EXCL),
  ]) {
    try {
      place()
      if ((stats.mode & 0o222) !== 0) chmodSync(to, 0o444)
      return true
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? ''
      if (code === 'EEXIST') return lstatSync(to).ino === stats.ino // linked before a kill, not recorded
      if (code === 'ENOSPC' || code === 'EDQUOT') throw error
    }
  }
  return false
}
