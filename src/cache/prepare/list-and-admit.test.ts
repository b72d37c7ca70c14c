import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { DscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import { pause } from '../../platform/poll.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { prepareDataset } from './prepare-dataset.js'
import type { Admit } from './staging.js'

test('a task that is refused admission fails alone, and the task that waits for it stages', async (t) => {
  const { cache, makeDataset } = await openExampleCache(t)
  const dataset = makeDataset('flowers')
  const refusal = new DscError('QUOTA_EXCEEDED', 'not for this user')
  const prepare = (task: string, admit?: Admit) => {
    const lease = { task, holder: { kind: 'ttl' }, expiresAtMs: null } as const
    const request = { dataset, isRefresh: false, mayWait: true, lease, admit }
    return prepareDataset(cache, request, { signal: t.signal })
  }
  let waiting: ReturnType<typeof prepare> | undefined
  const refused = prepare('refused', async (neededBytes) => {
    assert.ok(neededBytes >= 'flowers'.length)
    waiting = prepare('waiting')
    while ((await cache.record.listLeases({ task: 'waiting' })).length === 0) await pause(1)
    throw refusal
  })
  await assert.rejects(refused, refusal)
  assert.equal((await waiting)?.isStagedHere, true)
  assert.equal((await cache.record.listCopies({}, 0)).length, 1)
  assert.deepEqual(await cache.record.listLeases({ task: 'refused' }), [])
})

test('a stager that takes over an admitted staging first makes the room that the earlier one had not made', async (t) => {
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
