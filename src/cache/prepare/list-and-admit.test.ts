import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import type { Dataset } from '../../model/dataset.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { prepareDataset } from './prepare-dataset.js'

test('who takes over an admitted staging makes the room first that whoever was admitted had not made yet', async (t) => {
  let nowMs = Date.now()
  const { cache, makeDataset } = await openExampleCache(t, {
    policy: { maxDatasets: 1 },
    nowMs: () => nowMs,
  })
  const { record } = cache
  const prepare = (dataset: Dataset) => {
    const lease = { task: dataset.name, holder: { kind: 'ttl' }, expiresAtMs: nowMs + 1000 } as const
    return prepareDataset(cache, { dataset, isRefresh: false, mayWait: true, lease }, { signal: t.signal })
  }
  await prepare(makeDataset('old'))
  const fresh = makeDataset('new')
  nowMs += 3_600_000
  const { mock } = t.mock.method(record, 'finishEviction', () => {
    throw new Error('killed')
  })
  await assert.rejects(prepare(fresh), /killed/)
  const states = async () =>
    (await record.listCopies({ node: cache.node }, nowMs)).map(({ state }) => state).toSorted()
  assert.deepEqual(await states(), ['evicting', 'staging'])
  mock.restore()
  const { copy } = await prepare(fresh)
  assert.ok(existsSync(copy.path))
  assert.deepEqual(await states(), ['ready'])
})
