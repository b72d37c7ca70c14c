import { constants, copyFileSync, existsSync, linkSync, lstatSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type Database from 'better-sqlite3'
import { filesDirectory } from './cache-layout.js'
import { MANIFEST_FORMAT, manifestPath } from './manifest-db.js'
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
 * the file system can, else by hard link (both copies are read-only), else by copying.
 */
export async function reusePrevious(
  db: Database.Database,
  copyDirectory: string,
  previousCopyDirectory: string,
  signal: AbortSignal,
): Promise<{ readonly reusedFiles: number; readonly reusedBytes: number }> {
  const counts = { reusedFiles: 0, reusedBytes: 0 }
  if (!existsSync(manifestPath(previousCopyDirectory))) return counts // ATTACH would create it
  db.prepare('ATTACH ? AS previous').run(manifestPath(previousCopyDirectory))
  try {
    if (db.pragma('previous.user_version', { simple: true }) !== MANIFEST_FORMAT) return counts
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
      throwIfStopped(signal)
      const taken = rows.filter((row) =>
        takeFile(
          join(filesDirectory(previousCopyDirectory), row.key),
          join(filesDirectory(copyDirectory), row.key),
          row.size_bytes,
        ),
      )
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
  } finally {
    db.prepare('DETACH previous').run()
  }
  return counts
}

/** Whether `from` could become `to`. A file that is gone or has another size is fetched instead. */
function takeFile(from: string, to: string, sizeBytes: number): boolean {
  const stats = lstatSync(from, { throwIfNoEntry: false })
  if (!stats?.isFile() || stats.size !== sizeBytes) return false
  mkdirSync(dirname(to), { recursive: true })
  for (const place of [
    () => copyFileSync(from, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL),
    () => linkSync(from, to),
  ]) {
    try {
      place()
      return true
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? ''
      if (code === 'EEXIST') return lstatSync(to).ino === stats.ino // linked before a kill, not recorded
      if (code === 'ENOSPC' || code === 'EDQUOT') throw error
    }
  }
  copyFileSync(from, to)
  return true
}
