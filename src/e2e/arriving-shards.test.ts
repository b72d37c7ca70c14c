import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Feed, OpenFeedOptions } from '../exports/index.js'
import { shuffleSamples } from '../feed/plan/order.js'
import { startCountingStore } from '../testing/counting-store.js'
import { STORE_KEYS } from '../testing/gateway-world.js'
import { makeShardObjects } from '../testing/shard-objects.js'
import { finishedOf } from '../testing/staging-progress.js'
import { makeWorld, s3Dataset, type World, waitFor } from '../testing/world.js'
import { openWorldFeed, readPassOf } from '../testing/world-feed.js'

const SHARDS = 6
const IN_SHARD = 12
const COUNT = SHARDS * IN_SHARD
const BATCH = 3
const SEED = 5
const LARGE = 80_000
Object.assign(process.env, STORE_KEYS)

const lengthOf = (id: number, bytes: number) => bytes + ((id * 91) % 500)
const keyOf = (shard: number) => `train/${shard}.tar`

const makeShards = ({ bytes = LARGE, isPaired = false } = {}) =>
  makeShardObjects({ shards: SHARDS, inShard: IN_SHARD, lengthOf: (id) => lengthOf(id, bytes), isPaired })

const TOTAL = (objects: ReadonlyMap<string, Buffer>) =>
  [...objects.values()].reduce((sum, { length }) => sum + length, 0)

const LARGE_IN_SHARD = 30
/** Two shards that are fetched in parts. */
const makeLargeShards = (bytes: number) =>
  makeShardObjects({ shards: 2, inShard: LARGE_IN_SHARD, lengthOf: (id) => lengthOf(id, bytes) })

async function makeShardWorld(
  t: TestContext,
  objects: ReadonlyMap<string, Buffer>,
  { concurrency = 2 } = {},
) {
  const store = await startCountingStore(objects, { delayMs: 10 })
  t.after(() => store.close())
  const datasets = { flowers: s3Dataset('bucket', 'flowers/', store.endpoint) }
  const world = await makeWorld(t, { stage: { concurrency }, datasets })
  return { world, store }
}

const open = (world: World, options: Partial<OpenFeedOptions> = {}) =>
  openWorldFeed(world, {
    dataset: 'flowers',
    split: 'train',
    batchSize: BATCH,
    seed: SEED,
    memoryBytes: 4 * 2 ** 20,
    ...options,
  })

const read = (
  feed: Feed,
  { bytes = LARGE, ...options }: { bytes?: number; steps?: number; atStep?: (step: number) => unknown } = {},
) => readPassOf(feed, (id) => lengthOf(id, bytes), options)

const expected = (epoch: number) => [...shuffleSamples({ sampleCount: COUNT, seed: SEED, epoch })]
const shardOf = (id: number) => Math.floor(id / IN_SHARD)
const stateOf = (world: World) => world.query<{ state: string }>('SELECT state FROM copies')[0]?.state
const isReady = (world: World) => waitFor('the copy to be ready', () => stateOf(world) === 'ready')

/** The shard that an epoch needs last, and the batches before it does. */
function findLast(epoch: number): { readonly shard: number; readonly stepsBefore: number } {
  const first = Array.from({ length: SHARDS }, (_, shard) =>
    expected(epoch).findIndex((id) => shardOf(id) === shard),
  )
  const shard = first.indexOf(Math.max(...first))
  return { shard, stepsBefore: Math.floor(first[shard]! / BATCH) }
}

test('tar shards are fed while they come, in the order of a ready copy, and headers are little of what is fetched', async (t) => {
  const objects = makeShards()
  const { world, store } = await makeShardWorld(t, objects)
  const last = findLast(0)
  assert.ok(last.stepsBefore > 0)
  const letGo = store.holdBack(`flowers/${keyOf(last.shard)}`, 100_000)
  const feed = await open(world)
  const ids = await read(feed, {
    atStep(step) {
      if (step !== last.stepsBefore) return
      assert.equal(stateOf(world), 'staging')
      letGo()
    },
  })
  assert.deepEqual(ids, expected(0))
  assert.deepEqual(await read(feed), expected(1))
  await isReady(world)
  const share = store.sentBytes() / TOTAL(objects)
  assert.ok(share < 1.08, `${share.toFixed(3)} times the dataset was fetched`)
})

test('a state of shards that come goes on with shards that are here, and the other way round', async (t) => {
  const { world, store } = await makeShardWorld(t, makeShards())
  const last = findLast(0)
  const letGo = store.holdBack(`flowers/${keyOf(last.shard)}`, 100_000)
  const arriving = await open(world)
  const first = await read(arriving, { steps: 1 })
  const state = arriving.state()
  assert.equal(stateOf(world), 'staging')
  await arriving.close()
  letGo()
  const ready = await open(world, { start: 'staged' })
  assert.equal(stateOf(world), 'ready')
  ready.seek(state)
  const next = await read(ready, { steps: 10 })
  const later = ready.state()
  await ready.close()
  assert.equal((await world.dsc('evict', 'flowers', '--yes')).code, 0)
  const hold = store.holdBack(`flowers/${keyOf(last.shard)}`, 100_000)
  const cold = await open(world)
  assert.equal(stateOf(world), 'staging')
  cold.seek(later)
  hold()
  const rest = await read(cold, { steps: COUNT / BATCH - 11 })
  assert.deepEqual([...first, ...next, ...rest], expected(0))
  await isReady(world)
})

test('the list of what is in shards is made once for a version', async (t) => {
  const objects = makeShards()
  const { world, store } = await makeShardWorld(t, objects)
  const first = await open(world)
  await read(first)
  await isReady(world)
  await first.close()
  assert.equal((await world.dsc('evict', 'flowers', '--yes')).code, 0)
  const before = store.sentBytes()
  await read(await open(world))
  await isReady(world)
  assert.equal(store.sentBytes() - before, TOTAL(objects))
})

test('shards of small members come whole before they are fed, and nothing is fetched twice', async (t) => {
  const objects = makeShards({ bytes: 900 })
  const { world, store } = await makeShardWorld(t, objects)
  const feed = await open(world)
  assert.deepEqual(await read(feed, { bytes: 900 }), expected(0))
  await isReady(world)
  assert.equal(store.sentBytes(), TOTAL(objects))
})

test('members of one key are one sample also while their shards come', async (t) => {
  const { world, store } = await makeShardWorld(t, makeShards({ isPaired: true }))
  const namesAndBytes = async (feed: Feed) => {
    const seen: [string, string][] = []
    for await (const batch of feed)
      for (const { name, data } of batch) seen.push([name, data.toString('base64')])
    await feed.close()
    return seen
  }
  const letGo = store.holdBack(`flowers/${keyOf(findLast(0).shard)}`, 100_000)
  const feed = await open(world)
  assert.equal(stateOf(world), 'staging')
  letGo()
  const cold = await namesAndBytes(feed)
  assert.equal(cold.length, COUNT)
  const ready = await namesAndBytes(await open(world, { start: 'staged' }))
  assert.deepEqual(cold, ready)
})

test('a shard that is damaged at its source is an error that names the byte, or what comes before is fed', async (t) => {
  const objects = makeShards()
  objects.set(`flowers/${keyOf(2)}`, objects.get(`flowers/${keyOf(2)}`)!.subarray(0, 300_000))
  const { world } = await makeShardWorld(t, objects)
  await assert.rejects(open(world), { code: 'COPY_DAMAGED', message: /2\.tar is damaged at byte \d+/ })
})

test('samples of shards that are on their way are fed before any shard is whole, where that is asked for', async (t) => {
  const bytes = 900_000
  const { world, store } = await makeShardWorld(t, makeLargeShards(bytes), { concurrency: 8 })
  const sampleCount = 2 * LARGE_IN_SHARD
  const letGo = [0, 1].map((shard) => store.holdBack(`flowers/${keyOf(shard)}`, 2_000_000))
  const feed = await open(world, { start: 'unproven', memoryBytes: 16 * 2 ** 20 })
  const ids = await read(feed, { bytes, atStep: () => assert.equal(stateOf(world), 'staging') })
  assert.deepEqual(ids, [...shuffleSamples({ sampleCount, seed: SEED, epoch: 0 })])
  const state = feed.state()
  for (const each of letGo) each()
  await isReady(world)
  await feed.close()
  const ready = await open(world, { start: 'staged', memoryBytes: 16 * 2 ** 20 })
  ready.seek(state)
  assert.deepEqual(await read(ready, { bytes }), [...shuffleSamples({ sampleCount, seed: SEED, epoch: 1 })])
  assert.equal((await world.dsc('verify', 'flowers')).code, 0)
})

test('what a killed stager had of shards in ranges is fed on by the one that takes over', async (t) => {
  const objects = makeShards()
  const { world, store } = await makeShardWorld(t, objects)
  const first = await open(world)
  await read(first)
  await isReady(world)
  await first.close()
  assert.equal((await world.dsc('evict', 'flowers', '--yes')).code, 0)
  const before = store.sentBytes()
  // Whatever its last byte comes with: where members were fetched ahead, what is left of a shard is short.
  const letGo = store.holdBack(`flowers/${keyOf(findLast(0).shard)}`)
  const stager = world.start(['prepare', 'flowers'])
  await waitFor('the staging to be admitted', () => stateOf(world) === 'staging')
  const feed = await open(world, { start: 'unproven' })
  const ids = await read(feed, {
    async atStep(step) {
      if (step !== 2) return
      await waitFor('all but that shard', () => finishedOf(world).files.length === objects.size - 1)
      stager.process.kill('SIGKILL')
      letGo()
    },
  })
  assert.deepEqual(ids, expected(0))
  await isReady(world)
  const share = (store.sentBytes() - before) / TOTAL(objects)
  // One shard was under way, and members of it may have been fetched ahead of it.
  assert.ok(share < 1 + 2 / SHARDS, `${share.toFixed(3)} times the dataset was fetched`)
  assert.equal((await world.dsc('verify', 'flowers')).code, 0)
})

test('dsc feed plan --cold tells of shards by a few headers how soon they are fed, proven or not', async (t) => {
  const objects = makeShards()
  const { world, store } = await makeShardWorld(t, objects)
  const cost = ['--fixed-ms', '10', '--bandwidth', '1MB/s', '--step-ms', '1']
  const words = ['feed', 'plan', 'flowers', '--cold', '--split', 'train', '--batch', String(BATCH), ...cost]
  const plans = []
  for (const start of ['unproven', 'arriving', 'staged']) {
    const before = store.sentBytes()
    const plan = JSON.parse((await world.dsc(...words, '--start', start, '--json')).stdout)
    assert.deepEqual([plan.start, plan.samples, plan.isFedWhileArriving], [start, COUNT, start !== 'staged'])
    plans.push(plan.firstBatchMs - plan.startMs)
    // A few headers say how many there are; where they matter all are asked for once, to see how soon they come.
    const part = (store.sentBytes() - before) / TOTAL(objects)
    assert.ok(part < (start === 'staged' ? 0.01 : 0.03), `${start}: ${part} of all bytes were read`)
  }
  assert.deepEqual(
    plans.toSorted((a, b) => a - b),
    plans,
  )
  assert.equal(new Set(plans).size, plans.length)
  const told = (await world.dsc(...words)).stdout
  assert.match(
    told,
    /first batch after .*when the shards of its samples are here; after about 72 headers, \d+\.\d a millisecond/,
  )
  await open(world, { start: 'unproven' }) // keeps its list
  assert.match(
    (await world.dsc(...words)).stdout,
    /first batch after .*, for the list of its samples is here/,
  )
})
