import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { RecordStore } from '../../records/contract/record-store.js'
import { openPostgresRecord } from '../../records/postgres/record-store.js'
import { exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { type PostgresServer, startPostgresServer } from '../../testing/postgres-server.js'
import { waitFor } from '../../testing/world.js'
import type { StatusSnapshot } from './compose-status.js'
import { RecordReader, type StatusReader } from './status-reader.js'
import { type WatchIntervals, watchStatus } from './watch-status.js'

const HOUR_MS = 3_600_000
const NEVER: WatchIntervals = { pollMs: HOUR_MS, quietMs: HOUR_MS, pauseMs: 1 }

let server: PostgresServer
before(async () => {
  server = await startPostgresServer()
})
after(() => server.close())

/** Follows an empty record, which `other` changes over its own connections. */
async function follow(context: TestContext, intervals: WatchIntervals) {
  const url = await server.makeDatabase()
  const [record, other] = [await openPostgresRecord(url), await openPostgresRecord(url)]
  const seen: StatusSnapshot[] = []
  const supply = { current: async () => record, discard: async () => {} }
  const clock = { nowMs: () => NOW_MS, elapsedMs: () => performance.now() }
  const watch = watchStatus(new RecordReader({ supply, filter: {}, clock }), intervals, {
    show: (snapshot) => seen.push(snapshot),
    fail: (error) => assert.fail(String(error)),
  })
  context.after(async () => {
    watch.stop()
    await Promise.all([record.close(), other.close()])
  })
  const until = (isSeen: (snapshot: StatusSnapshot) => boolean) =>
    waitFor('a snapshot', () => seen.some(isSeen))
  return { url, other, watch, seen, until }
}

async function adopt(record: RecordStore, dataset: string): Promise<void> {
  await record.addAdopted(exampleCopy(dataset, { copyId: `id-${dataset}` }), NOW_MS)
}

test('what changes on another connection is seen though the next poll is an hour away', async (context) => {
  const { other, until } = await follow(context, NEVER)
  await until(() => true)
  await adopt(other, 'flowers')
  await until(({ copies }) => copies.length === 1)
  const lease = { task: 'job', holder: { kind: 'ttl' as const }, expiresAtMs: null }
  await other.leaseReady({ dataset: 'flowers', node: 'node-a', lease }, NOW_MS)
  await until(({ copies }) => copies[0]?.referenceCount === 1)
  await other.releaseUses({ task: 'job' }, NOW_MS)
  await until(({ events }) => events[0]?.kind === 'released')
})

test('a burst of changes is read once, not once each', async (context) => {
  const { other, seen, until, watch } = await follow(context, { ...NEVER, pauseMs: HOUR_MS })
  await until(() => true)
  watch.refresh() // the next read may follow at once; the pause starts after it
  await waitFor('the second reading', () => seen.length === 2)
  for (let index = 0; index < 30; index++) await adopt(other, `dataset-${index}`)
  assert.equal(seen.length, 2, 'changes are told, but the pause is not over')
  watch.refresh()
  await until(({ copies }) => copies.length === 30)
  assert.equal(seen.length, 3)
})

test('what a reading left out is read when the pause is over, not before', async (context) => {
  let readings = 0
  const reader: StatusReader<number> = {
    read: async () => ++readings,
    completeInMs: () => 0,
    waitForChange: ({ signal }) =>
      new Promise((resolve) => signal!.addEventListener('abort', () => resolve())),
  }
  for (const pauseMs of [HOUR_MS, 1]) {
    readings = 0
    const on = { show: () => {}, fail: (error: unknown) => assert.fail(String(error)) }
    const watch = watchStatus(reader, { ...NEVER, pauseMs }, on)
    context.after(() => watch.stop())
    if (pauseMs === 1) await waitFor('what was left out', () => readings > 1)
    else await sleep(50)
    watch.stop()
    assert.equal(readings > 1, pauseMs === 1)
  }
})

test('while nothing can be heard the record is polled, and heard again when the connection is back', async (context) => {
  const { url, other, seen, until } = await follow(context, { ...NEVER, pollMs: 20 })
  await until(() => true)
  await adopt(other, 'one')
  await until(({ copies }) => copies.length === 1)
  const operator = new pg.Client({ connectionString: url })
  await operator.connect()
  const endListening = () =>
    operator.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`,
    )
  // A poll may have seen the copy before the connection listened.
  await waitFor('one listening connection', async () => (await endListening()).rowCount === 1)
  await operator.end()
  const before = seen.length
  await waitFor('a poll', () => seen.length > before) // nothing has changed
  await adopt(other, 'two')
  await until(({ copies }) => copies.length === 2)
})
