import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import Database from 'better-sqlite3'
import { exampleCopy, exampleLease, NOW_MS } from '../../testing/example-copies.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { recordStoreContract } from '../record-store.contract.js'
import { recordStripesContract } from '../record-stripes.contract.js'
import { openSqliteRecord } from './record-store.js'

const open = async (context: TestContext) => {
  const path = join(await temporaryDirectory(context), 'nested', 'record.db')
  const opened = [await openSqliteRecord(path)]
  context.after(() => Promise.all(opened.map((record) => record.close())))
  const openAgain = async () => {
    const record = await openSqliteRecord(path)
    opened.push(record)
    return record
  }
  return { record: opened[0]!, openAgain }
}
recordStoreContract('SQLite', open)
recordStripesContract('SQLite', open)

test('the view cache_record has exactly the fields of the seed and the present reference count', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  const record = await openSqliteRecord(path)
  context.after(() => record.close())
  const nowMs = Date.now()
  await record.addAdopted(
    exampleCopy('flowers', { lock: { by: 'ops', reason: 'keep', atMs: NOW_MS } }),
    NOW_MS,
  )
  const request = { dataset: 'flowers', node: 'node-a' }
  await record.leaseReady(
    { ...request, lease: exampleLease('job-1', { expiresAtMs: nowMs + 60_000 }) },
    nowMs,
  )
  await record.leaseReady({ ...request, lease: exampleLease('job-2', { expiresAtMs: nowMs - 1 }) }, nowMs)
  const raw = new Database(path, { readonly: true })
  context.after(() => raw.close())
  assert.deepEqual(raw.prepare('SELECT * FROM cache_record').all(), [
    { dataset: 'flowers', node: 'node-a', last_task: 'job-2', lock_state: 'locked', reference_count: 1 },
  ])
})

test('a record that a newer dsc wrote is refused and left alone', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  await (await openSqliteRecord(path)).close()
  const raw = new Database(path)
  raw.prepare('INSERT INTO dsc_schema (version) VALUES (99)').run()
  raw.close()
  await assert.rejects(openSqliteRecord(path), {
    code: 'RECORD_NEWER',
    message: /schema version 99, this dsc knows/,
  })
})

test('a file that is no database is an explained failure', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  await writeFile(path, 'this is not a database, and long enough to be read as one'.repeat(20))
  await assert.rejects(openSqliteRecord(path), { code: 'RECORD_UNAVAILABLE' })
})
