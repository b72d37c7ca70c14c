import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { readUseWait } from '../../model/use-wait.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { openHeldSource } from '../../testing/held-source.js'
import { waitFor } from '../../testing/world.js'
import { readStatus } from '../status/status-snapshot.js'
import { prepareDataset } from './prepare-dataset.js'

const lease = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null } as const

test('who finds a ready copy did not wait, and who staged it did', async (t) => {
  const { cache, makeDataset, prepare } = await openExampleCache(t)
  const dataset = makeDataset('flowers')
  assert.equal((await prepare(dataset)).isStagedHere, true)
  const found = await prepare(dataset)
  assert.deepEqual([found.isStagedHere, found.downloaded], [false, undefined])
  const events = await cache.record.listEvents({ dataset: 'flowers', kinds: ['leased'], limit: 10 })
  const told = events.map(({ reason, detail }) => [reason, detail?.isHit, detail?.waitedMs === 0])
  assert.deepEqual(told[0], ['it was ready', true, true])
  assert.deepEqual(told[1]?.slice(1), [false, false])
})

test('a task that reads during the download waited until its first sample', async (t) => {
  const source = openHeldSource({ rose: 'red' })
  const letGo = source.hold('rose')
  const { cache, makeDataset } = await openExampleCache(t, { openSource: async () => source })
  const request = { dataset: makeDataset('flowers'), lease, isRefresh: false, mayWait: true }
  const read = Promise.withResolvers<number>()
  const prepared = prepareDataset(cache, request, { signal: t.signal, firstRead: read.promise })
  await waitFor('the download', () => source.fetches('rose') > 0)
  const findWaits = async () => {
    const { waits, transfers } = await readStatus(cache.record, {}, { nowMs: cache.nowMs() })
    assert.equal(transfers.length, 1)
    return waits.map(({ task }) => task)
  }
  assert.deepEqual(await findWaits(), ['job'])
  read.resolve(7)
  await waitFor('the end of its wait', async () => (await findWaits()).length === 0)
  await sleep(50)
  letGo()
  await prepared
  const [event] = await cache.record.listEvents({ dataset: 'flowers', kinds: ['leased'], limit: 1 })
  const { isHit, waitedMs, readyMs } = event!.detail
  assert.deepEqual([isHit, waitedMs], [false, 7])
  assert.ok(Number(readyMs) > 40)
  assert.match(event!.reason, /^read after 0\.0 s, ready after \d+\.\d s$/)
  assert.deepEqual(readUseWait(event!), {
    askedAtMs: event!.atMs - Number(readyMs),
    readAtMs: event!.atMs - Number(readyMs) + 7,
  })
})

test('who does not want to wait for another stager is told who it is, and leaves no lease', async (t) => {
  const { cache, makeDataset } = await openExampleCache(t)
  const dataset = makeDataset('flowers')
  const elsewhere = await cache.record.joinOrReserve(
    {
      ...{ dataset: 'flowers', node: cache.node, lease, source: dataset, origin: 's3', isRefresh: false },
      ...{ stager: { ...lease, task: 'first' }, directoryOf: (copyId) => `${cache.root}/staging/${copyId}` },
      accept: () => true,
    },
    cache.nowMs(),
  )
  assert.equal(elsewhere.outcome, 'stage')
  const before = await cache.record.listLeases({ dataset: 'flowers' })
  const request = { dataset, lease: { ...lease, task: 'second' }, isRefresh: false, mayWait: false }
  await assert.rejects(prepareDataset(cache, request, { signal: t.signal }), {
    code: 'STAGING_ELSEWHERE',
    message: /flowers is being staged by .*\(task first\)/,
  })
  assert.deepEqual(await cache.record.listLeases({ dataset: 'flowers' }), before)
})
