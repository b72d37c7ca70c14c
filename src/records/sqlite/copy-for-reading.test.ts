import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { openCopyForReading } from './copy-for-reading.js'

test('a copy for reading has what was committed, even in the write-ahead log, and refuses writes', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  const record = new Database(path)
  context.after(() => record.close())
  record.pragma('journal_mode = WAL')
  record.exec('CREATE TABLE t (x); INSERT INTO t VALUES (1)')
  const copy = openCopyForReading(path)
  context.after(() => copy.close())
  record.exec('INSERT INTO t VALUES (2)')
  assert.deepEqual(copy.prepare('SELECT x FROM t').pluck().all(), [1])
  assert.throws(() => copy.exec('INSERT INTO t VALUES (3)'), /readonly|query_only|read-only/i)
})
