import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import Database from 'better-sqlite3'
import { DISK, exampleCopy, exampleDataset, exampleLease, NOW_MS } from '../../testing/example-copies.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { insertCopy } from '../change/insert-copy.js'
import type { RecordStore } from '../contract/record-store.js'
import { createSqlRecordStore } from '../sql-record-store.js'
import { openSqliteDatabase, SQLITE_MIGRATIONS } from '../sqlite/sqlite-database.js'
import { schemaMigrations } from './schema.js'

/** The schema of this dsc. */
const PRESENT = SQLITE_MIGRATIONS
/** The newest schema whose leases do not know their node. */
const BEFORE_NODES_OF_LEASES = 10
const VERSIONS = [...PRESENT, 'next'].map((_, index) => index + 1)
/** Changes that a later dsc could make: a new column with a value for old rows, and a table filled from an old one. */
const NEXT = [
  `ALTER TABLE copies ADD COLUMN temperature TEXT NOT NULL DEFAULT 'warm'`,
  'CREATE TABLE last_tasks AS SELECT dataset, last_task FROM copies WHERE last_task IS NOT NULL',
]

test('a record of an older dsc opens, is migrated and keeps everything', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  const older = createSqlRecordStore(await openSqliteDatabase(path, PRESENT))
  await fill(older)
  const before = await readAll(older)
  await older.close()
  const newer = createSqlRecordStore(await openSqliteDatabase(path, [...PRESENT, NEXT]))
  context.after(() => newer.close())
  assert.deepEqual(await readAll(newer), before)
  assert.equal(before.copies.length, 4)
  assert.equal(before.leases.length, 3)
  const raw = new Database(path, { readonly: true })
  context.after(() => raw.close())
  assert.deepEqual(raw.prepare('SELECT version FROM dsc_schema ORDER BY version').pluck().all(), VERSIONS)
  assert.deepEqual(raw.prepare('SELECT DISTINCT temperature FROM copies').pluck().all(), ['warm'])
  assert.equal(raw.prepare('SELECT count(*) FROM last_tasks').pluck().get(), 4)
})

test('a record of the first schema opens, and its nodes have no agent', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  const first = await openSqliteDatabase(path, PRESENT.slice(0, 1))
  await first.write('durable', 'all', (transaction) =>
    transaction.run(
      `INSERT INTO nodes (node, cache_root, policy, disk, seen_at_ms) VALUES ('node-a', '/cache', '{}', '{}', 1)`,
    ),
  )
  await first.close()
  const record = createSqlRecordStore(await openSqliteDatabase(path))
  context.after(() => record.close())
  assert.deepEqual(await record.listNodes(), [
    { node: 'node-a', cacheRoot: '/cache', policy: {}, disk: {}, seenAtMs: 1 },
  ])
})

test('leases of an older record are found by their node', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  const older = await openSqliteDatabase(path, PRESENT.slice(0, BEFORE_NODES_OF_LEASES))
  await older.write('durable', 'all', async (transaction) => {
    insertCopy(transaction, exampleCopy('flowers', { copyId: 'a', node: 'node-a' }))
    insertCopy(transaction, exampleCopy('flowers', { copyId: 'b', node: 'node-b' }))
    for (const id of ['a', 'b'])
      transaction.post(
        `INSERT INTO leases (lease_id, copy_id, purpose, task, holder, created_at_ms, renewed_at_ms)
          VALUES (?, ?, 'use', 'task-1', '{"kind":"ttl"}', 1, 1)`,
        [`lease-${id}`, id],
      )
  })
  await older.close()
  const record = createSqlRecordStore(await openSqliteDatabase(path))
  context.after(() => record.close())
  const [lease, ...others] = await record.listLeases({ node: 'node-b' })
  assert.deepEqual([lease?.leaseId, lease?.node, others], ['lease-b', 'node-b', []])
})

test('a record of a newer dsc is refused with a message, and nothing in it is changed', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  const newer = createSqlRecordStore(await openSqliteDatabase(path, [...PRESENT, NEXT]))
  await fill(newer)
  await newer.close()
  const before = dump(path)
  await assert.rejects(openSqliteDatabase(path, PRESENT), {
    code: 'RECORD_NEWER',
    message: new RegExp(
      `has schema version ${VERSIONS.length}, this dsc knows versions up to ${PRESENT.length}`,
    ),
    hint: /newer dsc/,
  })
  assert.deepEqual(dump(path), before)
})

test('a migration that fails half-way leaves the older record as it was', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  const older = createSqlRecordStore(await openSqliteDatabase(path, PRESENT))
  await fill(older)
  await older.close()
  const before = dump(path)
  const broken = [...NEXT, 'ALTER TABLE no_such_table ADD COLUMN x TEXT']
  await assert.rejects(openSqliteDatabase(path, [...PRESENT, broken]), /no_such_table/)
  assert.deepEqual(dump(path), before)
})

test('several processes that open an older record at once migrate it once', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  await (await openSqliteDatabase(path, PRESENT)).close()
  const module = new URL('../sqlite/sqlite-database.js', import.meta.url).href
  const program = `const { openSqliteDatabase } = await import(${JSON.stringify(module)})
    await (await openSqliteDatabase(${JSON.stringify(path)}, ${JSON.stringify([...PRESENT, NEXT])})).close()`
  const run = promisify(execFile)
  await Promise.all(
    Array.from({ length: 3 }, () => run(process.execPath, ['--input-type=module', '-e', program])),
  )
  const raw = new Database(path, { readonly: true })
  context.after(() => raw.close())
  assert.deepEqual(raw.prepare('SELECT version FROM dsc_schema ORDER BY version').pluck().all(), VERSIONS)
})

test('the first schema is what it was: a released migration is never changed, a new one is appended', () => {
  const [first] = schemaMigrations({
    text: 'TEXT',
    integer: 'INT',
    sequenceKey: 'KEY',
    nowMs: 'NOW',
    sourceUrl: 'URL',
    generated: 'STORED',
  })
  const digest = createHash('sha256').update(JSON.stringify(first)).digest('hex').slice(0, 16)
  assert.equal(
    digest,
    '7b11f44f285d5dbc',
    'records written before would lack this change: append a migration to schema.ts instead',
  )
})

async function fill(record: RecordStore): Promise<void> {
  await record.saveDataset(exampleDataset('flowers', { include: ['**/*.jpg'] }), NOW_MS)
  await record.saveNode({
    node: 'node-a',
    cacheRoot: '/cache',
    policy: { maxDatasets: 9 },
    disk: DISK,
    seenAtMs: NOW_MS,
  })
  for (const [dataset, state] of [
    ['flowers', 'ready'],
    ['birds', 'ready'],
    ['old', 'evicting'],
  ] as const) {
    const { referenceCount: _, isBeingStaged: __, ...copy } = exampleCopy(dataset, { state })
    await record.addAdopted(copy, NOW_MS)
  }
  await record.setLock({ dataset: 'birds' }, { by: 'ops', reason: 'keep', atMs: NOW_MS }, NOW_MS)
  await record.leaseReady({ dataset: 'flowers', node: 'node-a', lease: exampleLease('task-1') }, NOW_MS)
  await record.joinOrReserve(
    {
      dataset: 'new',
      node: 'node-a',
      lease: exampleLease('task-2', { expiresAtMs: null }),
      stager: exampleLease('task-2', { holder: { kind: 'slurm', jobId: '7' } }),
      source: exampleDataset('new'),
      origin: 's3',
      directoryOf: (copyId) => `/cache/staging/${copyId}`,
      isRefresh: false,
    },
    NOW_MS,
  )
}

async function readAll(record: RecordStore) {
  return {
    datasets: await record.listDatasets(),
    nodes: await record.listNodes(),
    copies: await record.listCopies({}, NOW_MS),
    leases: await record.listLeases({}),
    events: await record.listEvents({ limit: 100 }),
  }
}

/** Schema and rows of a record, as text. */
function dump(path: string): readonly string[] {
  const raw = new Database(path, { readonly: true })
  try {
    const tables = raw
      .prepare<[], { name: string; sql: string }>(`SELECT name, sql FROM sqlite_master ORDER BY name`)
      .all()
    return tables.flatMap(({ name, sql }) => [
      `${name}: ${sql}`,
      ...(/^CREATE TABLE/.test(sql ?? '')
        ? raw
            .prepare(`SELECT * FROM ${name}`)
            .all()
            .map((row) => JSON.stringify(row))
        : []),
    ])
  } finally {
    raw.close()
  }
}
