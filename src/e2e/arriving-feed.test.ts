import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Feed, type OpenFeedOptions, openFeed } from '../exports/index.js'
import { isDscError } from '../failure/dsc-error.js'
import { shuffleSamples } from '../feed/plan/order.js'
import { type CountingStore, startCountingStore } from '../testing/counting-store.js'
import { sampleBytes } from '../testing/sample-folder.js'
import { makeWorld, s3Dataset, type World, waitFor } from '../testing/world.js'

const COUNT = 120
const BATCH = 10
const SEED = 5
const lengthOf = (id: number) => 3000 + ((id * 91) % 2000)
const TOTAL = Array.from({ length: COUNT }, (_, id) => lengthOf(id)).reduce((sum, each) => sum + each)
const OBJECTS = new Map(
  Array.from({ length: COUNT }, (_, id) => [
    `flowers/train/${String(id).padStart(4, '0')}.bin`,
    Buffer.from(sampleBytes(id, lengthOf(id))),
  ]),
)
Object.assign(process.env, {
  AWS_ACCESS_KEY_ID: 'x',
  AWS_SECRET_ACCESS_KEY: 'x',
  AWS_EC2_METADATA_DISABLED: 'true',
})

/** A world whose store answers each request after 20 ms, two at a time: staging takes more than a second. */
async function makeSlowWorld(t: TestContext): Promise<{ world: World; store: CountingStore }> {
  const store = await startCountingStore(OBJECTS, { delayMs: 20 })
  t.after(() => store.close())
  const datasets = { flowers: s3Dataset('bucket', 'flowers/', store.endpoint) }
  const world = await makeWorld(t, { stage: { concurrency: 2 }, datasets })
  return { world, store }
}

async function open(world: World, options: Partial<OpenFeedOptions> = {}): Promise<Feed> {
  const feed = await openFeed({
    dataset: 'flowers',
    split: 'train',
    batchSize: BATCH,
    seed: SEED,
    memoryBytes: 2 ** 20,
    ...world.ofProgram(),
    cacheFolder: join(world.directory, 'tables'),
    ...options,
  })
  world.onEnd(() => feed.close())
  return feed
}

/** Reads a pass, or `steps` of it, byte by byte; calls `atStep` after each batch. */
async function readPass(
  feed: Feed,
  { steps = COUNT / BATCH, atStep = () => {} }: { steps?: number; atStep?: (step: number) => unknown } = {},
): Promise<number[]> {
  const ids: number[] = []
  for await (const batch of feed) {
    for (const { id, data } of batch) {
      assert.ok(data.equals(sampleBytes(id, lengthOf(id))), `bytes of sample ${id}`)
      ids.push(id)
    }
    await atStep(ids.length / BATCH)
    if (ids.length >= steps * BATCH) break
  }
  return ids
}

const expected = (epoch: number) => [...shuffleSamples({ sampleCount: COUNT, seed: SEED, epoch })]
const stateOf = (world: World) => world.query<{ state: string }>('SELECT state FROM copies')[0]?.state

test('a dataset that is not here is fed while it comes, in the order of a ready copy', async (t) => {
  const { world, store } = await makeSlowWorld(t)
  const last = expected(0).at(-1)!
  const lastKey = `train/${String(last).padStart(4, '0')}.bin`
  const letGo = store.holdBack(`flowers/${lastKey}`)
  const feed = await open(world)
  const ids = await readPass(feed, {
    async atStep(step) {
      if (step !== COUNT / BATCH - 1) return
      assert.equal(stateOf(world), 'staging', 'all but the last batch were read before the copy was whole')
      const status = await world.dsc('status', '--json')
      assert.equal(status.code, 0, status.stderr)
      const { transfers } = JSON.parse(status.stdout)
      const [reader] = transfers[0].readers
      assert.deepEqual([reader.name, reader.waitsFor], [`the feed of process ${process.pid}`, [lastKey]])
      const shown = (await world.dsc('status', '--plain')).stdout
      assert.match(
        shown,
        /^flowers is read during the download by the feed of process \d+: waits for train\/\d+\.bin, /m,
      )
      letGo()
    },
  })
  assert.deepEqual(ids, expected(0))
  assert.deepEqual(await readPass(feed), expected(1))
  await waitFor('the copy to be ready', () => stateOf(world) === 'ready')
  assert.equal(store.sentBytes(), TOTAL, 'everything was fetched once')
})

test('verify, cleanup and evict leave a copy that is read while it comes alone, and say why', async (t) => {
  const { world, store } = await makeSlowWorld(t)
  const letGo = store.holdBack(`flowers/train/${String(expected(0).at(-1)).padStart(4, '0')}.bin`)
  const feed = await open(world)
  const ids = await readPass(feed, {
    async atStep(step) {
      if (step !== 3) return
      for (const { words, code, says } of [
        { words: ['verify', 'flowers'], code: 4, says: /the copy of flowers on node node-a is staging/ },
        { words: ['verify'], code: 0, says: /no copies to verify/ },
        { words: ['evict', 'flowers', '--yes'], code: 10, says: /cannot evict flowers/ },
        { words: ['evict', '--free', '1KiB', '--yes'], code: 5, says: /cannot evict 1 KiB/ },
        { words: ['cleanup', '--abandoned-after', '0s'], code: 0, says: /nothing/ },
      ]) {
        const { code: found, stdout, stderr } = await world.dsc(...words)
        assert.match(stdout + stderr, says, words.join(' '))
        assert.doesNotMatch(stderr, /\n\s+at /)
        assert.equal(found, code, words.join(' '))
      }
      assert.equal(stateOf(world), 'staging')
      letGo()
    },
  })
  assert.deepEqual(ids, expected(0))
  await waitFor('the copy to be ready', () => stateOf(world) === 'ready')
  assert.equal(store.sentBytes(), TOTAL, 'nothing was lost')
  assert.equal((await world.dsc('verify', 'flowers')).code, 0)
})

test('a state that is saved while a copy arrives goes on with a ready one, and the other way round', async (t) => {
  const { world } = await makeSlowWorld(t)
  const arriving = await open(world)
  const first = await readPass(arriving, { steps: 3 })
  const state = arriving.state()
  assert.equal(stateOf(world), 'staging')
  await arriving.close()
  assert.equal(stateOf(world), 'staging', 'what came is kept for the next one')
  const again = await open(world)
  again.seek(state)
  const next = await readPass(again, { steps: 3 })
  assert.equal(stateOf(world), 'staging')
  const later = again.state()
  await again.close()
  const ready = await open(world, { start: 'staged' })
  assert.equal(stateOf(world), 'ready')
  ready.seek(later)
  const rest = await readPass(ready)
  assert.deepEqual([...first, ...next, ...rest], expected(0))
  const fromReady = ready.state()
  await ready.close()
  await world.dsc('evict', 'flowers', '--yes')
  const cold = await open(world)
  cold.seek(fromReady)
  assert.deepEqual(await readPass(cold, { steps: 2 }), expected(1).slice(0, 2 * BATCH))
  assert.throws(
    () => cold.seek({ ...fromReady, listing: 'another' }),
    (error) => isDscError(error, 'FEED_STATE_MISMATCH'),
  )
})

test('a stager that is killed under a feed is taken over, and no byte is lost or fetched twice', async (t) => {
  const { world, store } = await makeSlowWorld(t)
  const stager = world.start(['prepare', 'flowers'])
  await waitFor('the staging to be admitted', () => stateOf(world) === 'staging')
  const feed = await open(world)
  const ids = await readPass(feed, {
    atStep: (step) => step === 3 && stager.process.kill('SIGKILL'),
  })
  assert.deepEqual(ids, expected(0))
  await waitFor('the copy to be ready', () => stateOf(world) === 'ready')
  // What was on its way, and what was written in the last 200 ms, comes again.
  assert.ok(store.sentBytes() < 1.2 * TOTAL, `${store.sentBytes()} of ${TOTAL} bytes were fetched`)
})

test('dsc feed plan --cold says when the first batch, the epoch and the copy are there, and fetches nothing', async (t) => {
  const { world, store } = await makeSlowWorld(t)
  const words = ['feed', 'plan', 'flowers', '--cold', '--split', 'train', '--batch', String(BATCH)]
  const { code, stderr } = await world.dsc(...words)
  assert.equal(code, 2)
  assert.match(stderr, /--fixed-ms 20 --bandwidth/)
  const time = ['--fixed-ms', '20', '--bandwidth', '100kB/s', '--step-ms', '10']
  const plan = JSON.parse((await world.dsc(...words, ...time, '--json')).stdout)
  assert.deepEqual([plan.objects, plan.contentBytes, plan.isFedWhileArriving], [COUNT, TOTAL, true])
  const afterListing = (ms: number) => ms - plan.startMs
  assert.ok(afterListing(plan.firstBatchMs) < afterListing(plan.wholeMs) / 4)
  assert.ok(plan.waitMs < plan.epochMs)
  assert.match((await world.dsc(...words, ...time)).stdout, /first batch after +\d.*\n.*whole copy after +\d/)
  assert.equal(store.sentBytes(), 0)
  assert.equal(stateOf(world), undefined)
})

test('a dataset that cannot be admitted is refused before anything is fed', async (t) => {
  const { world, store } = await makeSlowWorld(t)
  const datasets = { flowers: s3Dataset('bucket', 'flowers/', store.endpoint) }
  await world.configure({ cache: { minFree: '1PiB' }, datasets })
  await assert.rejects(open(world), (error) => isDscError(error, 'QUOTA_EXCEEDED'))
  await assert.rejects(open(world, { split: 'none' }), (error) => isDscError(error, 'QUOTA_EXCEEDED'))
})
