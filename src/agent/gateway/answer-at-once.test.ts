import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { Cache } from '../../cache/cache.js'
import { prepareDataset } from '../../cache/prepare/prepare-dataset.js'
import type { Dataset } from '../../model/dataset.js'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { openFileSource } from '../../sources/file/file-source.js'
import { openLocalGateway } from '../../testing/gateway-node.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { GatewayCopies } from './gateway-copies.js'

/** An empty object, the largest object that is answered at once, and the smallest that is not. */
const OBJECTS = { none: Buffer.alloc(0), small: Buffer.alloc(65_536, 'a'), large: Buffer.alloc(65_537, 'b') }
const KEEP_MS = 60_000
const dataset: Dataset = { name: 'd', source: 's3://bucket/data/', include: [], exclude: [] }

/**
 * A gateway over a ready copy of the objects, with its `clocks` stopped. `ask` returns the answer and how often it took
 * the long way, which always locates the dataset.
 */
async function openGateway(t: TestContext) {
  const directory = await temporaryDirectory(t)
  const [root, folder] = [join(directory, 'cache'), join(directory, 'source')]
  for (const path of [root, folder]) mkdirSync(path)
  for (const [key, body] of Object.entries(OBJECTS)) writeFileSync(join(folder, key), body)
  const record = await openSqliteRecord(join(directory, 'record.db'))
  t.after(() => record.close())
  const clocks = { recordMs: Date.now(), ownMs: 0 }
  t.mock.method(performance, 'now', () => clocks.ownMs)
  const cache: Cache = {
    ...{ record, root, node: 'n', policy: {}, historyMs: 1e9, transfer: {}, nowMs: () => clocks.recordMs },
    identity: { cacheId: 'c', machine: { id: 'm', host: 'h', isLasting: true } },
    openSource: async (wanted) => openFileSource({ ...wanted, source: `${pathToFileURL(folder)}/` }),
    measureDisk: async () => ({ capacityBytes: 1e12, freeBytes: 1e12, inodesTotal: 1e9, inodesFree: 1e9 }),
    listSlurmJobs: async () => new Set(),
  }
  const lease = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null } as const
  const request = { dataset, isRefresh: false, mayWait: true, lease }
  await prepareDataset(cache, request, { signal: t.signal })
  const gateway = await openLocalGateway({ cache, declared: [dataset], keepMs: KEEP_MS, note: () => {} })
  t.after(() => gateway.stop(0))
  const { mock: locate } = t.mock.method(GatewayCopies.prototype, 'locate')
  const ask = async (key: string, options: RequestInit = {}) => {
    locate.resetCalls()
    const answer = await fetch(`${gateway.url}/bucket/data/${key}`, options)
    const body = Buffer.from(await answer.arrayBuffer())
    return { status: answer.status, body, longWays: locate.callCount() }
  }
  return { ask, clocks }
}

for (const { what, key, options, status, body, isAtOnce } of [
  { what: 'a small object', key: 'small', status: 200, body: OBJECTS.small, isAtOnce: true },
  { what: 'an empty object', key: 'none', status: 200, body: OBJECTS.none, isAtOnce: true },
  {
    what: 'a short range of a large object',
    ...{ key: 'large', options: { headers: { range: 'bytes=1-65536' } } },
    ...{ status: 206, body: OBJECTS.large.subarray(1), isAtOnce: true },
  },
  {
    what: 'the head of a large object',
    ...{ key: 'large', options: { method: 'HEAD' }, status: 200, body: OBJECTS.none, isAtOnce: true },
  },
  {
    what: 'an object that the client has',
    ...{ key: 'large', options: { headers: { 'if-none-match': '*' } } },
    ...{ status: 304, body: OBJECTS.none, isAtOnce: true },
  },
  { what: 'a large object', key: 'large', status: 200, body: OBJECTS.large, isAtOnce: false },
  { what: 'an object that is not there', key: 'other', status: 404, isAtOnce: false },
])
  test(`${what} of a ready copy is answered ${isAtOnce ? 'at once' : 'the long way'}`, async (t) => {
    const { ask } = await openGateway(t)
    assert.equal((await ask('small')).longWays, 1, 'what nobody asked for is not held yet')
    const answer = await ask(key, options)
    assert.equal(answer.status, status)
    if (body) assert.ok(answer.body.equals(body))
    assert.equal(answer.longWays > 0, !isAtOnce)
  })

for (const { what, clock, ms } of [
  { what: 'what is known of the copy is old', clock: 'ownMs', ms: 500 },
  { what: 'its hold has to be renewed', clock: 'recordMs', ms: KEEP_MS / 2 + 1 },
] as const)
  test(`the long way is gone once more when ${what}`, async (t) => {
    const { ask, clocks } = await openGateway(t)
    const longWays = async () => (await ask('small')).longWays
    assert.deepEqual([await longWays(), await longWays()], [1, 0])
    clocks[clock] += ms
    assert.deepEqual([await longWays(), await longWays()], [1, 0])
  })
