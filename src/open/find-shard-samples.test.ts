import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import { fromText } from '../samples/byte-path.js'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleCopy } from '../testing/example-copies.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { openMemorySource } from '../testing/memory-source.js'
import { makeShardObjects } from '../testing/shard-objects.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { findKeptSamples, findShardSamples } from './find-shard-samples.js'

const OBJECTS = makeShardObjects({ shards: 2, inShard: 4, lengthOf: () => 128 * 1024 })
const KEYS = ['flowers/train/0.tar', 'flowers/train/1.tar']

/** Finds the samples of two shards that never come; `openings` counts how often their source was opened. */
async function comingShards(t: TestContext) {
  const { cache, makeDataset } = await openExampleCache(t)
  let openings = 0
  const context = {
    ...exampleSurroundings(cache, t.signal),
    openSource: async () => {
      openings += 1
      return openMemorySource(Object.fromEntries(OBJECTS))
    },
  }
  const cacheFolder = await temporaryDirectory(t)
  const entries = KEYS.map((key) => ({
    ...{ key, etag: null, versionId: null },
    sizeBytes: OBJECTS.get(key)!.length,
  })) as unknown as readonly ManifestEntry[]
  const shards = entries.map(({ key, sizeBytes }) => ({ path: fromText(key), size: sizeBytes }))
  const find = (changes: { readonly version?: string; readonly split?: string } = {}) =>
    findShardSamples(context, {
      preparing: { cache, dataset: makeDataset('flowers') } as never,
      copy: exampleCopy('flowers', { version: changes.version ?? 'v1' }),
      request: { target: 'flowers', split: changes.split, cacheFolder } as never,
      ...{ shards, entries },
      arrivals: {
        isHere: () => false,
        waitFor: (_: number, signal: AbortSignal) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve(false), { once: true })),
      } as never,
      pathOf: () => '/nowhere',
    })
  return { find, shards, cacheFolder, root: cache.root, openings: () => openings }
}

test('a list is made once for a version and a split, and kept', async (t) => {
  const { find, openings } = await comingShards(t)
  const made = await find()
  assert.equal(made?.table.count, 8)
  assert.deepEqual((await find())?.table.bytes, made.table.bytes)
  assert.equal(openings(), 1, 'the second is the kept one')
  await find({ version: 'v2' })
  await find({ split: 'train' })
  assert.equal(openings(), 3)
})

test('a list that another user of this node kept is found, and a damaged one is made again', async (t) => {
  const { find, openings, shards, cacheFolder, root } = await comingShards(t)
  await find()
  const listed = { version: 'v1', split: undefined, shards }
  const other = await temporaryDirectory(t)
  assert.equal(findKeptSamples(listed, { cacheFolder: other, root })?.table.count, 8)
  const [name] = readdirSync(cacheFolder)
  writeFileSync(join(cacheFolder, name!), 'damaged')
  await find()
  assert.equal(openings(), 2)
  assert.equal(findKeptSamples(listed, { cacheFolder, root: other })?.table.count, 8)
})

test('a kept list of other shards is not used', async (t) => {
  const { find, shards, cacheFolder, root } = await comingShards(t)
  await find()
  const fewer = { version: 'v1', split: undefined, shards: shards.slice(0, 1) }
  assert.equal(findKeptSamples(fewer, { cacheFolder, root }), undefined)
})
