import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Dataset, deriveDatasetName } from '../../model/dataset.js'
import type { Asker } from '../../policy/rights.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { UndeclaredBytes } from './undeclared-bytes.js'

const ADA: Asker = { uid: 64_001, parties: ['user:ada'], shownBy: 'socket' }

async function openLimit(context: TestContext, limitBytes: number) {
  const { cache, makeDataset, prepare } = await openExampleCache(context)
  const limit = new UndeclaredBytes(limitBytes)
  const name = (url: string): Dataset => ({ ...makeDataset(deriveDatasetName(url)), source: url })
  const take = (url: string, neededBytes: number) =>
    limit.take(cache, { asker: ADA, dataset: name(url), neededBytes })
  const refused = (url: string, neededBytes: number) =>
    assert.rejects(take(url, neededBytes), { code: 'QUOTA_EXCEEDED' })
  return { cache, name, prepare, take, refused }
}

test('tasks that stage one dataset have one copy, until the last of them has ended', async (context) => {
  const { take, refused } = await openLimit(context, 10)
  const frees = [await take('hf://org/one', 6), await take('hf://org/one', 6)]
  frees[0]!()
  await refused('hf://org/two', 6)
  frees[1]!()
  await take('hf://org/two', 6)
})

test('a version counts beside its successor while it is leased', async (context) => {
  const { cache, name, prepare, take, refused } = await openLimit(context, 100_000)
  const { copy, leaseId } = await prepare(name('hf://org/one'))
  const lease = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null, parties: ADA.parties } as const
  await cache.record.leaseReady({ dataset: copy.dataset, node: cache.node, lease }, cache.nowMs())
  await refused('hf://org/one', 100_000)
  await cache.record.releaseUses({ leaseId }, cache.nowMs())
  await take('hf://org/one', 100_000)
})
