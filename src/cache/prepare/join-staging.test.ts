import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { openExampleCache } from '../../testing/example-cache.js'
import { joinStaging } from './join-staging.js'

const lease = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null } as const

async function openWithReady(t: TestContext) {
  const { cache, makeDataset, prepare } = await openExampleCache(t)
  const dataset = makeDataset('flowers')
  const { copy } = await prepare(dataset)
  return { cache, dataset, copy }
}

test('a ready copy is taken, and looked past by a refresh, which stages', async (t) => {
  const { cache, dataset, copy } = await openWithReady(t)
  const joined = await joinStaging(cache, { dataset, lease }, { isRefresh: false, signal: t.signal })
  assert.deepEqual([joined.outcome, 'copy' in joined && joined.copy.copyId], ['ready', copy.copyId])
  const refreshed = await joinStaging(cache, { dataset, lease }, { isRefresh: true, signal: t.signal })
  assert.equal(refreshed.outcome, 'stage')
})

test('a copy of another definition of the dataset is not taken', async (t) => {
  const { cache, dataset } = await openWithReady(t)
  const changed = { ...dataset, include: ['rose'] }
  const joined = await joinStaging(cache, { dataset: changed, lease }, { isRefresh: false, signal: t.signal })
  assert.equal(joined.outcome, 'stage')
})

test('a copy whose files are gone is not taken, and the dataset is looked for once more', async (t) => {
  const { cache, dataset, copy } = await openWithReady(t)
  rmSync(copy.directory, { recursive: true })
  const joined = await joinStaging(cache, { dataset, lease }, { isRefresh: false, signal: t.signal })
  assert.equal(joined.outcome, 'again')
  assert.equal(
    (await joinStaging(cache, { dataset, lease }, { isRefresh: false, signal: t.signal })).outcome,
    'stage',
  )
})

test('who comes while another stages waits for that one', async (t) => {
  const { cache, makeDataset } = await openExampleCache(t)
  const dataset = makeDataset('flowers')
  assert.equal(
    (await joinStaging(cache, { dataset, lease }, { isRefresh: false, signal: t.signal })).outcome,
    'stage',
  )
  assert.equal(
    (await joinStaging(cache, { dataset, lease }, { isRefresh: false, signal: t.signal })).outcome,
    'wait',
  )
})
