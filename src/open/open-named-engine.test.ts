import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { FeedSettings } from '../feed/engine/feed-settings.js'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import type { FeedRequest } from './feed-request.js'
import { openNamedEngine } from './open-named-engine.js'

const MEMORY_BYTES = 4 * 2 ** 20

async function surround(t: TestContext) {
  const { cache, makeDataset } = await openExampleCache(t)
  const files = { 'a.bin': 'a', 'b.bin': 'b' }
  const datasets = [makeDataset('flowers', files), makeDataset('birds', files)]
  const context = exampleSurroundings(cache, t.signal, { datasets })
  const cacheFolder = await temporaryDirectory(t)
  const open = (request: Partial<FeedRequest>, settings: FeedSettings = {}) =>
    openNamedEngine(
      context,
      {
        ...{ target: undefined, mix: undefined, from: undefined, layout: 'full', fallback: undefined },
        ...{ split: undefined, only: undefined, isEncrypted: false, token: undefined, cacheFolder },
        ...request,
      },
      { memoryBytes: MEMORY_BYTES, threads: 1, ...settings },
    )
  const listHeld = async () =>
    (await cache.record.listLeases({ purpose: 'use' })).map(({ dataset }) => dataset).toSorted()
  return { context, open, listHeld, cacheFolder }
}

test('a dataset is leased until its engine closes, whenever the feed starts', async (t) => {
  const { open, listHeld } = await surround(t)
  for (const start of ['arriving', 'staged'] as const) {
    const engine = await open({ target: 'flowers', start })
    assert.equal(engine.table.count, 2)
    assert.deepEqual(await listHeld(), ['flowers'])
    await engine.close()
    assert.deepEqual(await listHeld(), [], start)
  }
})

test('a folder is fed as it is, below its split', async (t) => {
  const { open, listHeld, cacheFolder } = await surround(t)
  const folder = join(cacheFolder, 'data')
  mkdirSync(join(folder, 'train'), { recursive: true })
  for (const name of ['a.bin', 'train/b.bin']) writeFileSync(join(folder, name), name)
  const engine = await open({ target: folder, split: 'train' })
  assert.equal(engine.table.count, 1)
  assert.deepEqual(await listHeld(), [])
  await engine.close()
})

test('a folder of files is fed unread and, once an epoch was read, with its fingerprint', async (t) => {
  const { open, cacheFolder } = await surround(t)
  const folder = join(cacheFolder, 'data')
  mkdirSync(folder)
  for (const name of ['a.bin', 'b.bin']) writeFileSync(join(folder, name), name)
  const first = await open({ target: folder })
  const stream = first.openStream({ rank: 0, world: 1, replicate: 1, batchSize: 2, last: 'drop' }, 1)
  stream.release(await stream.read(0, 0))
  const { fingerprint, listing } = first.samplesIdentity
  await first.close()
  const second = await open({ target: folder })
  assert.deepEqual([fingerprint, second.samplesIdentity.listing], [null, listing])
  assert.match(second.samplesIdentity.fingerprint!, /^[0-9a-f]{64}$/)
  await second.close()
})

test('datasets of a mix are leased together, and visited as often as the mix says', async (t) => {
  const { open, listHeld } = await surround(t)
  const engine = await open({ mix: { flowers: 1, birds: 3 } })
  assert.deepEqual(await listHeld(), ['birds', 'flowers'])
  assert.equal(engine.table.count, 4)
  assert.equal(engine.positionCount, 2 + 3 * 2)
  await engine.close()
  assert.deepEqual(await listHeld(), [])
})

for (const { what, request, message } of [
  { what: 'neither a dataset nor a mix', request: {}, message: /^a dataset, a mix, or storage nodes/ },
  {
    what: 'a dataset and a mix',
    request: { target: 'flowers', mix: { birds: 1 } },
    message: 'either the dataset flowers or a mix is given, not both',
  },
])
  test(`${what}: the call is refused`, async (t) => {
    const { open, listHeld } = await surround(t)
    await assert.rejects(open(request), { code: 'USAGE', message })
    assert.deepEqual(await listHeld(), [])
  })

test('nothing stays leased where the samples cannot be fed', async (t) => {
  const { open, listHeld } = await surround(t)
  await assert.rejects(open({ target: 'flowers', only: ['png'] }))
  assert.deepEqual(await listHeld(), [])
  await assert.rejects(open({ target: 'flowers' }, { arenaFolder: '/nowhere' }), /nowhere/)
  assert.deepEqual(await listHeld(), [])
})
