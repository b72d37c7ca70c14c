import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { World } from './world.js'

/** The copy being staged, according to the record. */
export function findStaging(world: World): { copy_id: string; directory: string } | undefined {
  return world.query<{ copy_id: string; directory: string }>(
    `SELECT * FROM copies WHERE state = 'staging'`,
  )[0]
}

interface Finished {
  readonly files: readonly string[]
  readonly parts: number
  readonly ranges: ReadonlySet<string>
}

const NOTHING: Finished = { files: [], parts: 0, ranges: new Set() }

/** The finished parts in the staging's manifest: files, parts, and the byte ranges of those parts. */
export function finishedOf(world: World): Finished {
  const staging = findStaging(world)
  return staging === undefined ? NOTHING : finishedIn(staging.directory)
}

/** The same of a download into `directory`. */
export function finishedIn(directory: string): Finished {
  let manifest: Database.Database
  try {
    manifest = new Database(join(directory, 'manifest.db'), { readonly: true })
  } catch {
    return NOTHING
  }
  try {
    const files = manifest.prepare('SELECT key FROM object WHERE state = 1').all() as { key: string }[]
    const parts = manifest
      .prepare('SELECT number, part_bytes, size_bytes FROM part JOIN object ON object.id = part.object_id')
      .all() as { number: number; part_bytes: number; size_bytes: number }[]
    const ranges = parts.map(({ number, part_bytes, size_bytes }) => {
      const first = number * part_bytes
      return `${first}-${Math.min(size_bytes, first + part_bytes) - 1}`
    })
    return { files: files.map(({ key }) => key), parts: parts.length, ranges: new Set(ranges) }
  } finally {
    manifest.close()
  }
}
