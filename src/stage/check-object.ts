import { constants } from 'node:fs'
import { lstat, open } from 'node:fs/promises'
import type Database from 'better-sqlite3'
import type { DigestAlgorithm } from './digest/digest.js'
import { digestRange } from './digest/digest-range.js'
import type { ObjectRow } from './object-row.js'
import { planParts } from './plan/plan-parts.js'
import { formatDigest } from './transfer/transfer.js'

/** What is wrong with a file of a copy. */
export interface ObjectDamage {
  readonly problem: 'missing' | 'size' | 'content' | 'not-a-file'
  readonly expected: string
  readonly found: string
  /** Numbers of the wrong parts, when others are right. */
  readonly parts?: readonly number[]
}

/** Compares a file with its manifest entry, part by part. Parts that were never finished are not looked at. */
export async function checkObject(
  db: Database.Database,
  row: ObjectRow,
  path: string,
  signal: AbortSignal,
): Promise<ObjectDamage | undefined> {
  const stats = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw error
  })
  const expectedSize = `${row.size_bytes} bytes`
  if (!stats) return { problem: 'missing', expected: expectedSize, found: 'nothing' }
  if (!stats.isFile()) return { problem: 'not-a-file', expected: 'a file', found: 'something else' }
  if (stats.size !== row.size_bytes)
    return { problem: 'size', expected: expectedSize, found: `${stats.size} bytes` }
  const parts = planParts(row.size_bytes, row.part_bytes ?? Math.max(1, row.size_bytes))
  const digests = readDigests(db, row)
  const wrong: { readonly number: number; readonly expected: string; readonly found: string }[] = []
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    for (const part of parts) {
      const expected = digests.get(part.number)
      if (expected === undefined) continue
      const algorithm = expected.slice(0, expected.indexOf(':')) as DigestAlgorithm
      const found = formatDigest(algorithm, await digestRange(file, part, { algorithm, signal }))
      if (found !== expected) wrong.push({ number: part.number, expected, found })
    }
  } finally {
    await file.close()
  }
  const first = wrong[0]
  if (!first) return undefined
  const { expected, found } = first
  return {
    problem: 'content',
    expected,
    found,
    ...(parts.length > 1 ? { parts: wrong.map((part) => part.number) } : {}),
  }
}

function readDigests(db: Database.Database, row: ObjectRow): Map<number, string> {
  if (row.part_bytes === null) return new Map(row.digest === null ? [] : [[0, row.digest]])
  const rows = db
    .prepare<[number], { number: number; digest: string }>(
      'SELECT number, digest FROM part WHERE object_id = ?',
    )
    .all(row.id)
  return new Map(rows.map((part) => [part.number, part.digest]))
}
