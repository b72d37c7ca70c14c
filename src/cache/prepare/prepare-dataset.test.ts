import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openExampleCache } from '../../testing/example-cache.js'
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
