import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { forgetHistory } from './forget-history.js'

const EVENTS = 12_000

test('a long history is forgotten a little at a time, and its room is given back', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  const record = await openSqliteRecord(path)
  context.after(() => record.close())
  const raw = new Database(path)
  context.after(() => raw.close())
  const insert = raw.prepare(
    `INSERT INTO events (at_ms, kind, node, dataset, reason, detail) VALUES (?, 'leased', 'gpu-1', 'flowers', ?, '{}')`,
  )
  raw.transaction(() => {
    for (let atMs = 0; atMs < EVENTS; atMs++) insert.run(atMs, 'at the request of the job'.repeat(20))
  })()
  raw.pragma('wal_checkpoint(TRUNCATE)')
  const before = statSync(path).size
  const batches: number[] = []
  const forgotten = await forgetHistory(
    {
      pruneEvents: async (beforeMs, limit) => {
        batches.push(await record.pruneEvents(beforeMs, limit))
        return batches.at(-1)!
      },
    },
    EVENTS - 10,
    () => 0,
  )
  assert.equal(forgotten, EVENTS - 10)
  assert.ok(batches.length > 2, `in ${batches.length} transactions`)
  const left = await record.listEvents({ limit: 100 })
  assert.deepEqual(
    left.map(({ atMs }) => atMs),
    Array.from({ length: 10 }, (_, index) => EVENTS - 1 - index),
  )
  raw.pragma('wal_checkpoint(TRUNCATE)')
  assert.ok(statSync(path).size < before / 4, `${before} bytes before, ${statSync(path).size} after`)
})

test('what takes long to forget is left to the next call', async () => {
  let nowMs = 0
  let batches = 0
  const pruneEvents = async (_beforeMs: number, limit: number) => {
    batches += 1
    nowMs += 150
    return limit
  }
  await forgetHistory({ pruneEvents }, 1, () => nowMs)
  assert.equal(batches, 3)
  await forgetHistory({ pruneEvents }, 1, () => (nowMs += 1000))
  assert.equal(batches, 4, 'however slow it is, some is forgotten')
})
