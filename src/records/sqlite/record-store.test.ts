import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { openClients } from '../contract/contract-test.contract.js'
import { recordStoreContract } from '../contract/record-store.contract.js'
import { openSqliteRecord } from './record-store.js'

recordStoreContract('SQLite', async (context) => {
  const path = join(await temporaryDirectory(context), 'nested', 'record.db')
  const clients = await openClients(context, () => openSqliteRecord(path))
  const readView = async () => {
    const raw = new Database(path, { readonly: true })
    try {
      return raw.prepare('SELECT * FROM cache_record').all()
    } finally {
      raw.close()
    }
  }
  return { ...clients, readView }
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

test('what somebody else wrote into a column is named', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  const record = await openSqliteRecord(path)
  context.after(() => record.close())
  const raw = new Database(path)
  raw
    .prepare(
      `INSERT INTO nodes (node, cache_root, policy, disk, seen_at_ms) VALUES ('a', '/', 'nonsense', '{}', 1)`,
    )
    .run()
  raw.close()
  await assert.rejects(record.listNodes(), {
    code: 'RECORD_UNAVAILABLE',
    message: 'the record is damaged: expected JSON in policy, found "nonsense"',
  })
})

test('opening a record writes nothing, and so waits for nobody who does', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  await (await openSqliteRecord(path)).close()
  const raw = new Database(path)
  context.after(() => raw.close())
  assert.equal(raw.pragma('auto_vacuum', { simple: true }), 2, 'what is freed can be given back')
  const written = raw.pragma('data_version', { simple: true })
  raw.exec('BEGIN IMMEDIATE')
  const record = await openSqliteRecord(path)
  await record.close()
  raw.exec('ROLLBACK')
  assert.equal(raw.pragma('data_version', { simple: true }), written)
})

for (const who of ['another connection', 'the same connection'] as const)
  test(`a viewer wakes when ${who} changes a copy, long before its time is over`, async (context) => {
    const path = join(await temporaryDirectory(context), 'record.db')
    const [record, other] = [await openSqliteRecord(path), await openSqliteRecord(path)]
    context.after(() => Promise.all([record.close(), other.close()]))
    const beganMs = performance.now()
    const woken = record.waitForChange({ pollMs: 60_000, atMostMs: 60_000 })
    await (who === 'the same connection' ? record : other).addAdopted(exampleCopy('flowers'), NOW_MS)
    await woken
    assert.ok(performance.now() - beganMs < 10_000)
  })

test('a viewer of a record in which nothing changes waits as long as it said', async (context) => {
  const record = await openSqliteRecord(join(await temporaryDirectory(context), 'record.db'))
  context.after(() => record.close())
  await record.addAdopted(exampleCopy('flowers'), NOW_MS)
  const beganMs = performance.now()
  await record.waitForChange({ pollMs: 1, atMostMs: 300 })
  assert.ok(performance.now() - beganMs >= 299)
})
