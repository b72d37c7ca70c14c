import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { exampleCopy, exampleDataset, exampleLease, NOW_MS } from '../../testing/example-copies.js'
import { type PostgresServer, readCacheRecord, startPostgresServer } from '../../testing/postgres-server.js'
import { openClients } from '../contract/contract-test.contract.js'
import { recordStoreContract } from '../contract/record-store.contract.js'
import { openPostgresDatabase } from './postgres-database.js'
import { numberParameters } from './postgres-transaction.js'
import { openPostgresRecord } from './record-store.js'

let server: PostgresServer
before(async () => {
  server = await startPostgresServer()
})
after(() => server.close())

recordStoreContract('PostgreSQL', async (context) => {
  const url = await server.makeDatabase()
  const clients = await openClients(context, () => openPostgresRecord(url))
  return { ...clients, readView: () => readCacheRecord(url) }
})

test('many processes that open an empty database at once make one schema', async () => {
  const url = await server.makeDatabase()
  const records = await Promise.all(Array.from({ length: 8 }, () => openPostgresRecord(url)))
  await records[0]!.saveDataset(exampleDataset('flowers'), NOW_MS)
  assert.equal((await records[7]!.listDatasets()).length, 1)
  await Promise.all(records.map((record) => record.close()))
})

test('of twenty callers that stage one dataset at once, one does and the others wait', async (context) => {
  const url = await server.makeDatabase()
  const records = await Promise.all(Array.from({ length: 4 }, () => openPostgresRecord(url)))
  context.after(() => Promise.all(records.map((record) => record.close())))
  const joined = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      records[index % 4]!.joinOrReserve(
        {
          dataset: 'flowers',
          node: 'node-a',
          lease: exampleLease(`task-${index}`),
          stager: exampleLease(`task-${index}`),
          source: exampleDataset('flowers'),
          origin: 's3',
          directoryOf: (copyId) => `/cache/staging/${copyId}`,
          isRefresh: false,
        },
        NOW_MS,
      ),
    ),
  )
  const outcomes = joined.map(({ outcome }) => outcome).sort()
  assert.deepEqual(outcomes, ['stage', ...Array.from({ length: 19 }, () => 'wait')])
  const [copy] = await records[0]!.listCopies({}, NOW_MS)
  assert.equal(copy?.referenceCount, 20)
})

test('a waiter wakes when a copy changes, long before its time is over', async (context) => {
  const url = await server.makeDatabase()
  const [record, other] = [await openPostgresRecord(url), await openPostgresRecord(url)]
  context.after(() => Promise.all([record.close(), other.close()]))
  let isAwake = false
  const woken = record.waitForChange({ pollMs: 60_000, atMostMs: 60_000 }).then(() => {
    isAwake = true
  })
  // The listener connects in the background, so repeat the change until it hears one.
  for (let round = 0; !isAwake; round++) {
    await other.addAdopted(exampleCopy('flowers', { copyId: `id-${round}`, version: `v${round}` }), NOW_MS)
    await Promise.race([woken, new Promise((resolve) => setTimeout(resolve, 50))])
  }
})

test('a schema that another dsc changes does not stop those who have the record open', async (context) => {
  const url = await server.makeDatabase()
  const record = await openPostgresRecord(url, { connections: 1 })
  context.after(() => record.close())
  await record.addAdopted(exampleCopy('flowers'), NOW_MS)
  assert.equal((await record.listCopies({}, NOW_MS)).length, 1)
  const other = new pg.Client({ connectionString: url })
  await other.connect()
  await other.query('ALTER TABLE copies ADD COLUMN colour TEXT')
  await other.end()
  assert.equal((await record.listCopies({}, NOW_MS)).length, 1)
})

test('a posted change that fails makes the transaction fail, with its own failure', async () => {
  const url = await server.makeDatabase()
  const database = await openPostgresDatabase(url)
  const insert = 'INSERT INTO datasets (name, definition, updated_at_ms) VALUES (?, ?, ?)'
  const work = database.write('durable', 'rows', async (transaction) => {
    transaction.post(insert, ['kept?', '{}', 1])
    transaction.post(insert, ['broken', null, 1])
    transaction.post(insert, ['after', '{}', 1])
  })
  await assert.rejects(work, /null value in column "definition"/)
  const rows = await database.all('SELECT name FROM datasets')
  assert.deepEqual(rows, [])
  await database.close()
})

test('work goes on over restarts and crashes of the server, and nothing happens twice or is lost', async (context) => {
  const url = await server.makeDatabase()
  const retries = { conflict: 0, lost: 0 }
  const record = await openPostgresRecord(url, {
    onRetry: (reason) => {
      retries[reason] += 1
    },
  })
  context.after(() => record.close())
  const acknowledged: string[] = []
  const repeated: string[] = []
  let isOver = false
  const worker = async (name: number) => {
    for (let round = 0; !isOver; round++) {
      await record.addEvent({
        atMs: NOW_MS,
        kind: 'leased',
        node: `node-${name}`,
        dataset: 'flowers',
        copyId: null,
        task: null,
        reason: 'counted',
        detail: {},
      })
      // Adopting a copy twice answers false: the caller must see that it happened exactly once.
      const copyId = `${name}-${round}`
      const copy = exampleCopy('flowers', { copyId, version: copyId })
      if (!(await record.addAdopted(copy, NOW_MS))) repeated.push(copyId)
      acknowledged.push(copyId)
    }
  }
  const workers = [0, 1, 2, 3].map(worker)
  for (const mode of ['fast', 'immediate', 'fast'] as const) {
    await new Promise((resolve) => setTimeout(resolve, 300))
    await server.stop(mode)
    await server.start()
  }
  await new Promise((resolve) => setTimeout(resolve, 300))
  isOver = true
  await Promise.all(workers)
  assert.ok(retries.lost > 0, 'the restarts met work under way')
  const copies = new Set((await record.listCopies({}, NOW_MS)).map(({ copyId }) => copyId))
  assert.deepEqual(
    acknowledged.filter((copyId) => !copies.has(copyId)),
    [],
    'what was acknowledged is there',
  )
  assert.deepEqual(repeated, [], 'what committed was not made a second time')
  assert.equal(copies.size, acknowledged.length)
})

test('a server that is not there is an explained failure, after the patience is over', async () => {
  await assert.rejects(openPostgresRecord('postgres://dsc:secret@127.0.0.1:1/dsc', { patienceMs: 100 }), {
    code: 'RECORD_UNAVAILABLE',
    message: /postgres:\/\/127\.0\.0\.1:1\/dsc/,
  })
})

test('a database that does not exist is an explained failure at once', async () => {
  const url = `postgres://dsc@127.0.0.1:${server.port}/missing`
  await assert.rejects(openPostgresRecord(url), { code: 'RECORD_UNAVAILABLE', message: /missing/ })
})

test('a record that a newer dsc wrote is refused and left alone', async () => {
  const url = await server.makeDatabase()
  await (await openPostgresRecord(url)).close()
  const raw = new pg.Client({ connectionString: url })
  await raw.connect()
  await raw.query('INSERT INTO dsc_schema (version) VALUES (99)')
  await raw.end()
  await assert.rejects(openPostgresRecord(url), { code: 'RECORD_NEWER', message: /schema version 99/ })
})

test('parameters are numbered, and question marks in quotes are text', () => {
  assert.equal(numberParameters(`a = ? AND b = '?' AND c IN (?, ?)`), `a = $1 AND b = '?' AND c IN ($2, $3)`)
})
