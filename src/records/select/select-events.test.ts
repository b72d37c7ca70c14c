import assert from 'node:assert/strict'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import type { SqlReader } from '../database/sql-database.js'
import { SQLITE_MIGRATIONS } from '../sqlite/sqlite-database.js'
import { selectEvents } from './select-events.js'

for (const { of, filter } of [
  { of: 'all events', filter: {} },
  { of: 'a node', filter: { node: 'gpu-01' } },
  { of: 'a dataset', filter: { dataset: 'flowers' } },
])
  test(`a day of ${of} is found in an index: older events are not read`, async (t) => {
    const database = new Database(':memory:')
    t.after(() => database.close())
    for (const statement of SQLITE_MIGRATIONS.flat()) database.exec(statement)
    let steps: readonly string[] = []
    const explain = async (sql: string, parameters: readonly unknown[] = []) => {
      const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters)
      steps = (rows as { detail: string }[]).map(({ detail }) => detail)
      return []
    }
    const reader: SqlReader = { all: explain, map: explain }
    await selectEvents(reader, { ...filter, kinds: ['staged'], sinceMs: 1, limit: 20_000 })
    const [walk, ...search] = steps
    assert.match(walk!, /^SEARCH events USING .*(rowid>\?|sequence>\?)/)
    assert.ok(
      search.includes('SEARCH events USING COVERING INDEX events_by_time (at_ms>?)'),
      steps.join('\n'),
    )
  })
