import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Feed, OpenFeedOptions } from '../exports/index.js'
import { shuffleSamples } from '../feed/plan/order.js'
import { type CountingStore, startCountingStore } from '../testing/counting-store.js'
import { succeeds } from '../testing/dsc-processes.js'
import { STORE_KEYS } from '../testing/gateway-world.js'
import { sampleBytes } from '../testing/sample-folder.js'
import { finishedOf } from '../testing/staging-progress.js'
import { makeWorld, s3Dataset, type World, waitFor } from '../testing/world.js'
import { openWorldFeed, readPassOf } from '../testing/world-feed.js'

const COUNT = 120
const BATCH = 10
const SEED = 5
const lengthOf = (id: number) => 3000 + ((id * 91) % 2000)
const LARGEST = 5000
const TOTAL = Array.from({ length: COUNT }, (_, id) => lengthOf(id)).reduce((sum, each) => sum + each)
const OBJECTS = new Map(
  Array.from({ length: COUNT }, (_, id) => [
    `flowers/train/${String(id).padStart(4, '0')}.bin`,
    Buffer.from(sampleBytes(id, lengthOf(id))),
  ]),
)
Object.assign(process.env, STORE_KEYS)

/** A world whose store answers each request after 20 ms, two at a time: staging takes more than a second. */
async function makeSlowWorld(t: TestContext): Promise<{ world: World; store: CountingStore }> {
  const store = await startCountingStore(OBJECTS, { delayMs: 20 })
  t.after(() => store.close())
  const datasets = { flowers: s3Dataset('bucket', 'flowers/', store.endpoint) }
  const world = await makeWorld(t, { stage: { concurrency: 2 }, datasets })
  return { world, store }
}

const open = (world: World, options: Partial<OpenFeedOptions> = {}) =>
  openWorldFeed(world, {
    dataset: 'flowers',
    split: 'train',
    batchSize: BATCH,
    seed: SEED,
    memoryBytes: 2 ** 20,
    ...options,
  })

const readPass = (feed: Feed, options?: Parameters<typeof readPassOf>[2]) =>
  readPassOf(feed, lengthOf, options)
const expected = (epoch: number) => [...shuffleSamples({ sampleCount: COUNT, seed: SEED, epoch })]
/** The object that is needed last in the first pass. */
const LAST_KEY = `train/${String(expected(0).at(-1)).padStart(4, '0')}.bin`
const LEASED = "SELECT detail FROM events WHERE kind = 'leased'"
const stateOf = (world: World) => world.query<{ state: string }>('SELECT state FROM copies')[0]?.state

test('a dataset that is not here is fed while it comes, in the order of a ready copy', async (t) => {
  const { world, store } = await makeSlowWorld(t)
  const letGo = store.holdBack(`flowers/${LAST_KEY}`)
  const beganMs = performance.now()
  const feed = await open(world)
  let firstMs = 0
  const ids = await readPass(feed, {
    async atStep(step) {
      if (step === 1) firstMs = performance.now() - beganMs
      if (step !== COUNT / BATCH - 1) return
      assert.equal(stateOf(world), 'staging', 'all but the last batch were read before the copy was whole')
      const status = await succeeds(world.dsc('status', '--json'))
      const { transfers, waits } = JSON.parse(status.stdout)
      assert.deepEqual([waits, transfers[0].waitingTasks], [[], []], 'its task waits for nothing')
      const [reader] = transfers[0].readers
      assert.deepEqual([reader.name, reader.waitsFor], [`the feed of process ${process.pid}`, [LAST_KEY]])
      const shown = (await world.dsc('status', '--plain')).stdout
      assert.match(
        shown,
        /^flowers is read during the download by the feed of process \d+: waits for train\/\d+\.bin, /m,
      )
      await sleep(firstMs) // so that the download takes longer than the first sample, whenever each is counted from
      letGo()
    },
  })
  assert.deepEqual(ids, expected(0))
  assert.deepEqual(await readPass(feed), expected(1))
  await waitFor('the copy to be ready', () => stateOf(world) === 'ready')
  assert.equal(store.sentBytes(), TOTAL, 'everything was fetched once')
  const detail = await waitFor('the use', () => world.query<{ detail: string }>(LEASED)[0]?.detail)
  const { waitedMs, readyMs } = JSON.parse(detail)
  assert.ok(waitedMs <= firstMs + 1 && waitedMs < readyMs, `${waitedMs} of ${readyMs}, ${firstMs}`)
})

test('a feed gives its heap back when the download is over, not before', async (t) => {
  const { world, store } = await makeSlowWorld(t)
  const letGo = store.holdBack(`flowers/${LAST_KEY}`)
  const trace = "import{setFlagsFromString}from'node:v8';setFlagsFromString('--trace-gc')"
  const words = ['--split', 'train', '--socket', join(world.directory, 'feed.sock')]
  const { process: feed } = world.start(['feed', 'serve', 'flowers', ...words], {
    environment: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(trace)}` },
  })
  t.after(() => feed.kill())
  let told = ''
  feed.stdout!.on('data', (chunk) => {
    told += chunk
  })
  await waitFor('the feed', () => /feeding 120 samples/.test(told))
  await sleep(3000) // it gives back two seconds after its work
  const isCollected = () => /Mark-Compact.* testing;/.test(told) // so V8 calls a collection that is asked for
  assert.equal(stateOf(world), 'staging')
  assert.equal(isCollected(), false, 'it needs its heap to download')
  letGo()
  await waitFor('the collection', isCollected)
  assert.equal(stateOf(world), 'ready')
})

test('verify, cleanup and evict leave a copy that is read while it comes alone, and say why', async (t) => {
  const { world, store } = await makeSlowWorld(t)
  const letGo = store.holdBack(`flowers/${LAST_KEY}`)
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
  const { world, store } = await makeSlowWorld(t)
  const letGo = store.holdBack(`flowers/${LAST_KEY}`)
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
  letGo()
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
  assert.throws(() => cold.seek({ ...fromReady, listing: 'another' }), { code: 'FEED_STATE_MISMATCH' })
})

test('a stager that is killed under a feed is taken over, and no byte is lost or fetched twice', async (t) => {
  const { world, store } = await makeSlowWorld(t)
  const letGo = store.holdBack(`flowers/${LAST_KEY}`)
  const stager = world.start(['prepare', 'flowers'])
  await waitFor('the staging to be admitted', () => stateOf(world) === 'staging')
  const feed = await open(world)
  const atDeath = { finishedBytes: 0, sentBytes: 0 }
  const ids = await readPass(feed, {
    async atStep(step) {
      if (step !== 3) return
      await waitFor('what came to be noted', () => finishedOf(world).files.length > 0)
      stager.process.kill('SIGKILL')
      assert.equal((await stager.finished).signal, 'SIGKILL')
      for (const key of finishedOf(world).files)
        atDeath.finishedBytes += OBJECTS.get(`flowers/${key}`)!.length
      atDeath.sentBytes = store.sentBytes()
      letGo()
    },
  })
  assert.deepEqual(ids, expected(0))
  await waitFor('the copy to be ready', () => stateOf(world) === 'ready')
  // Only bytes that were in flight, or not yet in the manifest, are fetched again.
  const sentLater = store.sentBytes() - atDeath.sentBytes
  const mostLater = TOTAL - atDeath.finishedBytes + 2 * LARGEST // two requests were under way
  assert.ok(sentLater <= mostLater, `${sentLater} bytes were fetched later, expected at most ${mostLater}`)
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
  await assert.rejects(open(world), { code: 'QUOTA_EXCEEDED' })
  await assert.rejects(open(world, { split: 'none' }), { code: 'QUOTA_EXCEEDED' })
})
