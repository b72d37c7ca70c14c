import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SourceFailure } from '../failure/source-failure.js'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleDataset } from '../testing/example-copies.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { openMemorySource } from '../testing/memory-source.js'
import { makeShardObjects } from '../testing/shard-objects.js'
import { measureHeaders } from './measure-headers.js'

const OBJECTS = makeShardObjects({ shards: 2, inShard: 8, lengthOf: () => 128 * 1024 })
const SHARDS = ['flowers/train/0.tar', 'flowers/train/1.tar'].map((key) => ({
  ...{ key, etag: null as never, versionId: null },
  sizeBytes: OBJECTS.get(key)!.length,
}))

test('where all headers come during the warm-up, they are the measure', async (t) => {
  const source = openMemorySource(Object.fromEntries(OBJECTS))
  const { cache } = await openExampleCache(t, { openSource: async () => source })
  const found = await measureHeaders(exampleSurroundings(cache, t.signal), exampleDataset('flowers'), SHARDS)
  assert.ok(found.warmUp.count >= 16, `${found.warmUp.count} of at least 16 headers`)
  assert.equal(found.perMs, found.warmUp.count / found.warmUp.ms)
})

test('a source that gives no header is measured as one in a second, and closed', async (t) => {
  let closed = 0
  const { cache } = await openExampleCache(t, {
    openSource: async () => ({
      ...openMemorySource({}),
      openFetcher: async () => ({
        fetch: () => Promise.reject(new SourceFailure('SOURCE_DENIED', 'no', { isTransient: false })),
        inspect: () => Promise.reject(new Error('not asked for')),
        close: async () => void closed++,
      }),
      close: async () => void closed++,
    }),
  })
  const found = await measureHeaders(exampleSurroundings(cache, t.signal), exampleDataset('flowers'), SHARDS)
  assert.equal(found.perMs, 0.001)
  assert.equal(found.warmUp.count, 0)
  assert.ok(closed >= 2, 'the connections and the source')
})
