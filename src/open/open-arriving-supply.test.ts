import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SourceFailure } from '../failure/source-failure.js'
import type { Dataset } from '../model/dataset.js'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { openHeldSource } from '../testing/held-source.js'
import { openMemorySource } from '../testing/memory-source.js'
import { makeShardObjects } from '../testing/shard-objects.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { beginPreparing } from './begin-preparing.js'
import type { FeedRequest } from './feed-request.js'
import { findArrivingSupply } from './open-arriving-supply.js'

/** Begins to prepare `objects`. The source holds `held` back from the download, but gives its headers. */
async function arrive(
  t: TestContext,
  objects: Readonly<Record<string, string | Uint8Array>>,
  { held, ...changes }: { readonly held?: string } & Partial<Dataset> = {},
) {
  const source = openHeldSource(objects)
  t.after(() => source.release())
  if (held !== undefined) source.hold(held)
  let release = async () => {}
  t.after(() => release()) // before the record closes
  const { cache, makeDataset } = await openExampleCache(t, { openSource: async () => source })
  const dataset = { ...makeDataset('flowers'), ...changes }
  const context = {
    ...exampleSurroundings(cache, t.signal, { datasets: [dataset] }),
    openSource: async () => openMemorySource(objects),
  }
  const preparing = await beginPreparing(context, 'flowers', { isReadWhileComing: true })
  release = () => preparing.release()
  const cacheFolder = await temporaryDirectory(t)
  const find = (request: Partial<FeedRequest> = {}) =>
    findArrivingSupply(
      context,
      {
        ...{ target: 'flowers', mix: undefined, from: undefined, layout: 'full', fallback: undefined },
        ...{ split: undefined, only: undefined, isEncrypted: false, token: undefined, cacheFolder },
        ...request,
        target: 'flowers',
      },
      preparing,
    )
  return { cache, context, preparing, find }
}

test('files are fed while one of them is on its way, and the lease ends with the feed', async (t) => {
  const { cache, context, find, preparing } = await arrive(
    t,
    { rose: 'red', tulip: 'yellow' },
    { held: 'tulip' },
  )
  const downloads: Promise<unknown>[] = []
  const found = await find({ onArriving: (download) => downloads.push(download) })
  assert.deepEqual(downloads, [preparing.prepared])
  assert.equal(found?.supply.table.count, 2)
  assert.notEqual(found.supply.isWhole, true)
  assert.deepEqual(context.told.notes, ['dsc: flowers is fed while it is staged'])
  assert.equal((await cache.record.listLeases({ dataset: 'flowers', purpose: 'use' })).length, 1)
  await found.release()
  assert.deepEqual(await cache.record.listLeases({ dataset: 'flowers', purpose: 'use' }), [])
})

test('of a split only its files are samples', async (t) => {
  const objects = { 'train/rose': 'red', 'train/tulip': 'yellow', 'test/iris': 'blue' }
  const { find } = await arrive(t, objects, { held: 'test/iris' })
  const found = await find({ split: 'train' })
  assert.equal(found?.supply.table.count, 2)
  await found.release()
})

test('a split without files in the listing, and rows, wait for the whole copy', async (t) => {
  const objects = { rose: 'red', tulip: 'yellow' }
  const { find } = await arrive(t, objects, { held: 'tulip' })
  assert.equal(await find({ split: 'train' }), undefined)
  assert.equal(await find({ format: 'csv' }), undefined)
  const { find: findRows } = await arrive(t, objects, { held: 'tulip', format: 'jsonl' })
  assert.equal(await findRows(), undefined, 'as the dataset declares')
})

test('a copy that is ready is no arriving one', async (t) => {
  const { preparing, find } = await arrive(t, { rose: 'red' })
  await preparing.prepared
  assert.equal(await find({ onArriving: () => assert.fail() }), undefined)
})

test('the reason is told where nothing will come', async (t) => {
  const openSource = async () => {
    throw new SourceFailure('SOURCE_DENIED', 'flowers: not yours', { isTransient: false })
  }
  const { cache, makeDataset } = await openExampleCache(t, { openSource })
  const context = exampleSurroundings(cache, t.signal, { datasets: [makeDataset('flowers')] })
  const preparing = await beginPreparing(context, 'flowers', { isReadWhileComing: true })
  await assert.rejects(findArrivingSupply(context, { target: 'flowers' } as never, preparing), {
    code: 'SOURCE_DENIED',
  })
})

test('shards are listed from their headers while one is on its way', async (t) => {
  const objects = makeShardObjects({ shards: 3, inShard: 4, lengthOf: () => 128 * 1024 })
  const { context, find } = await arrive(t, Object.fromEntries(objects), { held: 'flowers/train/2.tar' })
  const found = await find({ split: 'flowers/train' })
  assert.equal(found?.supply.table.count, 12)
  assert.equal(context.told.progress.at(-1), undefined, 'the line of progress is cleared')
  await found.release()
})

test('shards without a sample are refused, and the folder is left', async (t) => {
  const { find } = await arrive(t, { 'a.tar': Buffer.alloc(10_240), 'b.tar': 'x' }, { held: 'b.tar' })
  await assert.rejects(find({ only: ['a.tar'] }), { code: 'SOURCE_EMPTY' })
})
