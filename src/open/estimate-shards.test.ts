import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleDataset } from '../testing/example-copies.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { openMemorySource } from '../testing/memory-source.js'
import { makeShardObjects } from '../testing/shard-objects.js'
import { estimateShards } from './estimate-shards.js'

/** Estimates the shards of a source; counts how often the source was closed. */
async function estimate(t: TestContext, objects: ReadonlyMap<string, Buffer>) {
  const source = openMemorySource(Object.fromEntries(objects))
  let closed = 0
  const openSource = async () => ({ ...source, close: async () => void closed++ })
  const { cache } = await openExampleCache(t, { openSource })
  const context = exampleSurroundings(cache, t.signal)
  const shards = [...objects]
    .filter(([key]) => key.endsWith('.tar'))
    .map(([key, body]) => ({ key, etag: null as never, versionId: null, sizeBytes: body.length }))
  const found = await estimateShards(context, exampleDataset('flowers'), shards)
  assert.equal(closed, 1)
  return found
}

test('shards of equal members are estimated as they are', async (t) => {
  const objects = makeShardObjects({ shards: 3, inShard: 40, lengthOf: () => 64 * 1024 })
  const { samples, headers } = await estimate(t, objects)
  // The end of a tar file is padded, which counts as content.
  assert.ok(samples >= 120 && samples <= 122, `${samples} samples`)
  assert.equal(headers, samples)
})

test('two members of one name are one sample, with two headers', async (t) => {
  const objects = makeShardObjects({ shards: 2, inShard: 20, lengthOf: () => 256 * 1024, isPaired: true })
  const { samples, headers } = await estimate(t, objects)
  assert.equal(headers, samples * 2)
})

test('headers of small members are not asked for', async (t) => {
  const objects = makeShardObjects({ shards: 2, inShard: 40, lengthOf: () => 512 })
  const { samples, headers } = await estimate(t, objects)
  assert.ok(samples >= 80, `${samples} samples`)
  assert.equal(headers, undefined)
})

test('empty shards are passed over, and nothing but empty ones holds nothing', async (t) => {
  const objects = makeShardObjects({ shards: 1, inShard: 4, lengthOf: () => 128 * 1024 })
  const empty = Buffer.alloc(10_240)
  const found = await estimate(t, new Map([['flowers/train/_.tar', empty], ...objects]))
  assert.ok(found.samples >= 4, `${found.samples} samples`)
  assert.deepEqual(await estimate(t, new Map([['a.tar', empty]])), { samples: 0, headers: 0 })
})
