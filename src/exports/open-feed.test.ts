import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { shuffleSamples } from '../feed/plan/order.js'
import { makeTestFolder, sampleBytes, writeSamples } from '../testing/sample-folder.js'
import { type Feed, openFeed } from './index.js'

async function open(context: TestContext, batchSize = 16): Promise<Feed> {
  const root = makeTestFolder(context)
  writeSamples(join(root, 'train'), 100, () => 300)
  const cacheFolder = join(root, 'cache')
  const feed = await openFeed({
    dataset: root,
    split: 'train',
    batchSize,
    seed: 3,
    memoryBytes: 2 ** 20,
    cacheFolder,
  })
  context.after(() => feed.close())
  return feed
}
const expected = (epoch: number) => [...shuffleSamples({ sampleCount: 100, seed: 3, epoch })].slice(0, 96)

test('iterating a feed gives one epoch; iterating again the next', async (context) => {
  const feed = await open(context)
  for (let epoch = 0; epoch < 3; epoch++) {
    const ids: number[] = []
    for await (const batch of feed)
      for (const item of batch) {
        assert.ok(item.data.equals(sampleBytes(item.id, 300)))
        assert.equal(item.name, `${String(item.id).padStart(6, '0')}.bin`)
        ids.push(item.id)
      }
    assert.deepEqual(ids, expected(epoch))
  }
})

test('leaving an epoch early ends it: the next iteration is the next epoch', async (context) => {
  const feed = await open(context)
  for await (const _ of feed) break
  const ids: number[] = []
  for await (const batch of feed) ids.push(...batch.map((item) => item.id))
  assert.deepEqual(ids, expected(1))
})

test('a second iteration beside the first is the next epoch, and the first one says that it has ended', async (context) => {
  const feed = await open(context)
  const first = feed[Symbol.asyncIterator]()
  await first.next()
  const ids: number[] = []
  for await (const batch of feed) ids.push(...batch.map((item) => item.id))
  assert.deepEqual(ids, expected(1))
  await assert.rejects(() => first.next(), { code: 'USAGE', message: /another iteration/ })
})

test('a feed goes on after the last batch of a saved state, in batches of another size too', async (context) => {
  const first = await open(context)
  let count = 0
  for await (const _ of first) if (++count === 4) break
  const state = first.state()
  assert.deepEqual([state.epoch, state.position], [0, 64])
  const second = await open(context, 8)
  second.seek(state)
  const ids: number[] = []
  for await (const batch of second) ids.push(...batch.map((item) => item.id))
  assert.deepEqual(ids, expected(0).slice(64))
})

test('the state at the end of an epoch is the start of the next', async (context) => {
  const feed = await open(context)
  let state = feed.state()
  for await (const _ of feed) state = feed.state()
  assert.deepEqual([state.epoch, state.position], [1, 0])
  assert.deepEqual(feed.state(), state)
})

test('a mix of directories visits the samples of each as often as it says', async (context) => {
  const root = makeTestFolder(context)
  writeSamples(join(root, 'web'), 20, () => 300)
  writeSamples(join(root, 'code'), 6, () => 200)
  const mix = { [join(root, 'web')]: 1, [join(root, 'code')]: 3 }
  const options = { mix, batchSize: 19, seed: 3, memoryBytes: 2 ** 20, cacheFolder: join(root, 'cache') }
  await using feed = await openFeed(options)
  const visits = new Map<string, number>()
  for await (const batch of feed)
    for (const { name, data } of batch) {
      const id = Number(name.slice(-10, -4))
      assert.ok(data.equals(sampleBytes(id, name.startsWith('web/') ? 300 : 200)))
      visits.set(name, (visits.get(name) ?? 0) + 1)
    }
  assert.equal(visits.size, 26)
  for (const [name, count] of visits) assert.equal(count, name.startsWith('web/') ? 1 : 3)
  assert.deepEqual(feed.state().mix, { code: 3, web: 1 })
  assert.throws(() => feed.seek({ ...feed.state(), mix: { code: 2, web: 1 } }), {
    code: 'FEED_STATE_MISMATCH',
    message: /mix/,
  })
})

test('lost samples are skipped where that is asked for, and stay in the state', async (context) => {
  const root = makeTestFolder(context)
  writeSamples(join(root, 'train'), 100, () => 300)
  const options = {
    dataset: join(root, 'train'),
    batchSize: 16,
    seed: 3,
    memoryBytes: 2 ** 20,
    onError: 'skip' as const,
    cacheFolder: join(root, 'cache'),
  }
  const feed = await openFeed(options)
  context.after(() => feed.close())
  const victim = expected(0)[20]!
  writeFileSync(join(root, 'train', `${String(victim).padStart(6, '0')}.bin`), '')
  const ids: number[] = []
  for await (const batch of feed) ids.push(...batch.map((item) => item.id))
  assert.deepEqual(
    ids,
    expected(0).filter((id) => id !== victim),
  )
  assert.deepEqual(feed.state().skipped, [[0, victim]])
  feed.seek(feed.state())
  assert.deepEqual(feed.state().skipped, [[0, victim]])
})

test('a state of other data, another seed or an odd position is refused by name', async (context) => {
  const feed = await open(context)
  for (const change of [{ seed: 4 }, { listing: 'x' }, { n: 99 }, { position: 17 }])
    assert.throws(() => feed.seek({ ...feed.state(), ...change }), { code: 'FEED_STATE_MISMATCH' })
})
