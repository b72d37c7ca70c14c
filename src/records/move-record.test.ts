import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { exampleCopy, exampleDataset, exampleLease, NOW_MS } from '../testing/example-copies.js'
import { startPostgresServer } from '../testing/postgres-server.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { writeEvent } from './change/write-event.js'
import type { SqlDatabase } from './database/sql-database.js'
import { moveRecord, PAGE_ROWS } from './move-record.js'
import { openPostgresDatabase } from './postgres/postgres-database.js'
import { createSqlRecordStore } from './sql-record-store.js'
import { openSqliteDatabase } from './sqlite/sqlite-database.js'

const EVENT = {
  atMs: NOW_MS,
  kind: 'locked',
  node: 'node-a',
  dataset: 'flowers',
  copyId: null,
  task: null,
  detail: {},
} as const

test('a record moves from SQLite to PostgreSQL and back without losing anything', async (context) => {
  const directory = await temporaryDirectory(context)
  const server = await startPostgresServer()
  context.after(() => server.close())
  const old = await openSqliteDatabase(join(directory, 'old.db'))
  const middle = await openPostgresDatabase(await server.makeDatabase())
  const last = await openSqliteDatabase(join(directory, 'new.db'))
  context.after(() => Promise.all([old.close(), middle.close(), last.close()]))
  const [before, after] = [createSqlRecordStore(old), createSqlRecordStore(last)]
  await before.saveDataset(exampleDataset('flowers', { include: ['**/?.jpg'] }), NOW_MS)
  const stripe = { index: 1, nodes: ['node-a', 'node-b'] }
  await before.addAdopted(exampleCopy('flowers', { chargedBytes: 2 ** 52, stripe }), NOW_MS)
  const used = { dataset: 'flowers', node: 'node-a', stripe, lease: exampleLease('job-1') }
  await before.leaseReady(used, NOW_MS)
  const rows = await moveRecord(old, middle)
  assert.deepEqual(rows, { datasets: 1, nodes: 0, copies: 1, leases: 1, events: 1 })
  await assert.rejects(moveRecord(old, middle), { code: 'RECORD_NOT_EMPTY' })
  await moveRecord(middle, last)
  const everything = async (record: typeof before) => ({
    datasets: await record.listDatasets(),
    copies: await record.listCopies({}, NOW_MS),
    leases: await record.listLeases({}),
    events: await record.listEvents({ limit: 10 }),
  })
  assert.deepEqual(await everything(after), await everything(before))
})

test('a record of several pages moves whole', async (context) => {
  const directory = await temporaryDirectory(context)
  const old = await openSqliteDatabase(join(directory, 'old.db'))
  const last = await openSqliteDatabase(join(directory, 'new.db'))
  context.after(() => Promise.all([old.close(), last.close()]))
  const events = Array.from({ length: 2 * PAGE_ROWS }, (_, index) => ({ ...EVENT, reason: `${index}` }))
  await old.write('quick', 'all', async (transaction) => {
    for (const event of events) writeEvent(transaction, event)
  })
  assert.equal((await moveRecord(old, last)).events, events.length)
  const moved = await createSqlRecordStore(last).listEvents({ limit: 3 * PAGE_ROWS })
  assert.deepEqual(
    moved.toReversed().map(({ reason }) => reason),
    events.map(({ reason }) => reason),
  )
})

test('a failure of the old record is told as its own', async (context) => {
  const directory = await temporaryDirectory(context)
  const old = await openSqliteDatabase(join(directory, 'old.db'))
  const last = await openSqliteDatabase(join(directory, 'new.db'))
  context.after(() => Promise.all([old.close(), last.close()]))
  const cause = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })
  const failing: SqlDatabase = {
    ...old,
    read: (work) =>
      old.read((transaction) =>
        work({
          ...transaction,
          all: (sql, parameters) =>
            sql.includes('FROM nodes') ? Promise.reject(cause) : transaction.all(sql, parameters),
        }),
      ),
  }
  await assert.rejects(moveRecord(failing, last), { code: 'RECORD_UNAVAILABLE', message: /old\.db/ })
  assert.deepEqual((await moveRecord(old, last)).events, 0)
})

test('a record is not moved away from under a stager', async (context) => {
  const directory = await temporaryDirectory(context)
  const old = await openSqliteDatabase(join(directory, 'old.db'))
  const last = await openSqliteDatabase(join(directory, 'new.db'))
  context.after(() => Promise.all([old.close(), last.close()]))
  const nowMs = Date.now()
  await createSqlRecordStore(old).joinOrReserve(
    {
      dataset: 'flowers',
      node: 'node-a',
      lease: exampleLease('job-1'),
      stager: exampleLease('job-1', { expiresAtMs: nowMs + 60_000 }),
      source: exampleDataset('flowers'),
      origin: 's3',
      directoryOf: (copyId) => `/cache/${copyId}`,
      isRefresh: false,
    },
    nowMs,
  )
  await assert.rejects(moveRecord(old, last), { code: 'COPY_IN_USE', message: /flowers .* node-a by job-1/ })
})
