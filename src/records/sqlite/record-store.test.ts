import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { openClients } from '../contract/contract-test.contract.js'
import { recordStoreContract } from '../contract/record-store.contract.js'
import { openSqliteRecord } from './record-store.js'

const readView = (path: string) => {
  const raw = new Database(path, { readonly: true })
  try {
    return raw.prepare('SELECT * FROM cache_record').all()
  } finally {
    raw.close()
  }
}

/** The bundle of a warm `dsc prepare`: the same code, over Node's own SQLite where that does not warn. */
const bundle = createRequire(import.meta.url)('../../warm-sqlite.cjs') as {
  readonly openSqliteRecord: typeof openSqliteRecord
}

for (const [name, open] of [
  ['SQLite', openSqliteRecord],
  ['SQLite of Node', bundle.openSqliteRecord],
] as const)
  recordStoreContract(name, async (context) => {
    const path = join(await temporaryDirectory(context), 'nested', 'record.db')
    const clients = await openClients(context, () => open(path))
    return { ...clients, readView: async () => readView(path) }
  })

test('the bundle of a warm prepare loads without a word, whatever this Node says of its SQLite', () => {
  const path = fileURLToPath(new URL('../../warm-sqlite.cjs', import.meta.url))
  const loaded = spawnSync(process.execPath, ['-e', 'require(process.argv[1])', path], { encoding: 'utf8' })
  assert.deepEqual([loaded.status, loaded.stdout, loaded.stderr], [0, '', ''])
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
  await assert.rejects(openSqliteRecord(path), { code: 'RECORD_UNAVAILABLE', hint: /^move the file away/ })
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

for (const suffix of ['', '-wal', '-shm', '-journal'])
  test(`a link in the place of record.db${suffix} is refused, and nothing is made where it points`, async (context) => {
    const folder = await temporaryDirectory(context)
    const target = join(folder, 'elsewhere')
    await symlink(target, join(folder, `record.db${suffix}`))
    await assert.rejects(openSqliteRecord(join(folder, 'record.db')), {
      code: 'CACHE_ROOT_INVALID',
      message: /expected a regular file, found a symbolic link/,
    })
    assert.equal(existsSync(target), false)
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
