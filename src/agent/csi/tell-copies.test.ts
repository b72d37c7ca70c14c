import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evictCopies } from '../../cache/eviction/evict-copies.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { tellCopies } from './tell-copies.js'

test('a download and an eviction are told as they begin and end, a lease is not', async (context) => {
  let told = 0
  const example = await openExampleCache(context)
  const cache = tellCopies(example.cache, () => told++)
  const dataset = example.makeDataset('flowers')
  await example.prepare(dataset, { cache })
  assert.equal(told, 2)
  await example.prepare(dataset, { cache })
  assert.equal(told, 2)
  await cache.record.releaseUses({ task: 'job', node: cache.node }, cache.nowMs())
  await evictCopies(cache, { kind: 'datasets', names: ['flowers'] })
  assert.equal(told, 4)
})

test('so are copies that appear and vanish, also if the record does not answer', async () => {
  const names = ['addAdopted', 'returnCopy', 'forgetCopies'] as const
  for (const name of names)
    for (const answer of [async () => 'done', () => Promise.reject(new Error('away'))]) {
      let told = 0
      const record = { [name]: answer } as unknown as RecordStore
      const cache = tellCopies({ record } as Parameters<typeof tellCopies>[0], () => told++)
      await (cache.record[name] as () => Promise<unknown>)().catch(() => {})
      assert.equal(told, 1, name)
    }
})
