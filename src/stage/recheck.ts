import { join } from 'node:path'
import type Database from 'better-sqlite3'
import { readBootId } from './boot-id.js'
import { filesDirectory } from './cache-layout.js'
import { checkObject } from './check-object.js'
import { readSetting, writeSetting } from './manifest-db.js'
import type { ObjectRow } from './object-row.js'
import { throwIfStopped } from './retry.js'

/**
 * After a reboot, files that were finished but never synced may have lost their bytes: checks them by digest and
 * marks what is not right as not fetched. Does nothing while the boot is the one the files were written in.
 */
export async function recheckAfterReboot(
  db: Database.Database,
  copyDirectory: string,
  options: { readonly signal: AbortSignal; readonly bootId?: string | undefined },
): Promise<{ readonly recheckedObjects: number; readonly lostObjects: number }> {
  const bootId = options.bootId ?? readBootId() ?? 'unknown'
  const before = readSetting(db, 'boot_id')
  const counts = { recheckedObjects: 0, lostObjects: 0 }
  if (before !== undefined && (before !== bootId || bootId === 'unknown')) {
    const page = db.prepare<[number], ObjectRow>(
      'SELECT * FROM object WHERE id > ? AND (state = 1 OR part_bytes IS NOT NULL) ORDER BY id LIMIT 500',
    )
    const forget = db.prepare('UPDATE object SET state = 0, digest = NULL, verified_by = NULL WHERE id = ?')
    const forgetPart = db.prepare('DELETE FROM part WHERE object_id = ? AND number = ?')
    for (let rows = page.all(0); rows.length > 0; rows = page.all(rows.at(-1)!.id)) {
      for (const row of rows) {
        throwIfStopped(options.signal)
        const damage = await checkObject(
          db,
          row,
          join(filesDirectory(copyDirectory), row.key),
          options.signal,
        )
        counts.recheckedObjects += 1
        if (!damage) continue
        counts.lostObjects += 1
        db.transaction(() => {
          forget.run(row.id)
          for (const number of damage.parts ?? []) forgetPart.run(row.id, number)
          if (damage.parts === undefined) db.prepare('DELETE FROM part WHERE object_id = ?').run(row.id)
        })()
      }
    }
  }
  writeSetting(db, 'boot_id', bootId)
  return counts
}
