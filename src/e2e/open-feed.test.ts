import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import type { Feed, FeedState, OpenFeedOptions } from '../exports/index.js'
import { type DscError, isDscError } from '../failure/dsc-error.js'
import { shuffleSamples } from '../feed/plan/order.js'
import type { Running } from '../testing/dsc-processes.js'
import { type S3Server, startS3Server } from '../testing/s3-server.js'
import { sampleBytes, writeSamples } from '../testing/sample-folder.js'
import { makeWorld, s3Dataset, type World } from '../testing/world.js'
import { openWorldFeed, readPassOf } from '../testing/world-feed.js'

const COUNT = 300
const BATCH = 10
const SEED = 9
const lengthOf = (id: number) => 2000 + ((id * 91) % 3000)
const expected = (epoch: number) => [...shuffleSamples({ sampleCount: COUNT, seed: SEED, epoch })]

let server: S3Server
before(async () => {
  server = await startS3Server()
  Object.assign(process.env, server.environment)
})
after(() => server.close())

/** A world whose S3 bucket and whose folder `samples` hold the same samples, the bucket as dataset `flowers`. */
async function makeSamplesWorld(context: TestContext): Promise<World> {
  const bucket = await server.makeBucket()
  const datasets = { flowers: s3Dataset(bucket, 'flowers/', server.endpoint) }
  const world = await makeWorld(context, { server, datasets })
  writeSamples(join(world.directory, 'samples'), COUNT, lengthOf)
  for (let id = 0; id < COUNT; id++) {
    const name = `${String(id).padStart(6, '0')}.bin`
    const body = readFileSync(join(world.directory, 'samples', name))
    await server.putObject(bucket, `flowers/train/${name}`, body)
  }
  return world
}

/** Opens a feed in this process, in memory for a tenth of the samples. */
const open = (world: World, options: Partial<OpenFeedOptions>) =>
  openWorldFeed(world, { batchSize: BATCH, seed: SEED, memoryBytes: 2 ** 18, ...options })

const readPass = (feed: Feed, atStep: (step: number) => unknown = () => {}) =>
  readPassOf(feed, lengthOf, { atStep })

for (const way of ['in this process', 'behind a socket'])
  test(`a program that reads a feed ${way} notes how long it waited`, async (context) => {
    const world = await makeSamplesWorld(context)
    const prepared = await world.dsc('prepare', 'flowers', '--task', 'reads')
    assert.equal(prepared.code, 0)
    const socket = join(world.directory, 'feed.sock')
    const serving = way === 'behind a socket' ? await startServe(world, socket, 'flowers') : undefined
    const began = performance.now()
    const feed = await open(world, serving ? { socket } : { dataset: 'flowers' })
    await readPass(feed)
    await feed.close()
    serving?.process.kill('SIGTERM')
    await serving?.finished
    const longest = performance.now() - began
    const events = world.query<{ dataset: string; detail: string }>(
      "SELECT dataset, detail FROM events WHERE kind = 'fed'",
    )
    assert.deepEqual(
      events.map(({ dataset }) => dataset),
      ['flowers'],
    )
    const { gpuMs, waits } = JSON.parse(events[0]!.detail)
    const waitedMs = Object.values<number>(waits).reduce((sum, ms) => sum + ms, 0)
    assert.ok(
      waitedMs > 0 && waitedMs <= Math.min(gpuMs, longest) + 2,
      `${waitedMs} ms of ${gpuMs}, ${longest}`,
    )
  })

test('a dataset is opened by its name, staged first, and leased until the feed is closed', async (context) => {
  const world = await makeSamplesWorld(context)
  const feed = await open(world, { dataset: 'flowers', split: 'train', start: 'staged' })
  const copies = world.query<{ state: string }>('SELECT state FROM copies')
  assert.deepEqual(copies, [{ state: 'ready' }])
  assert.equal(world.query('SELECT task FROM leases').length, 1)
  const evicted = await world.dsc('evict', 'flowers', '--yes')
  assert.notEqual(evicted.code, 0, 'the copy is in use')
  assert.deepEqual(await readPass(feed), expected(0))
  assert.equal(feed.state().dataset, 'flowers')
  await feed.close()
  assert.deepEqual(world.query('SELECT task FROM leases'), [])
})

test('a mix takes datasets and directories alike', async (context) => {
  const world = await makeSamplesWorld(context)
  const mix = { flowers: 2, [join(world.directory, 'samples')]: 0.5 }
  const feed = await open(world, { mix, memoryBytes: 2 ** 20 })
  const visits = { flowers: 0, samples: 0 }
  for await (const batch of feed)
    for (const { name, data } of batch) {
      const id = Number(name.slice(-10, -4))
      assert.ok(data.equals(sampleBytes(id, lengthOf(id))))
      visits[name.split('/', 1)[0] as keyof typeof visits] += 1
    }
  assert.deepEqual(visits, { flowers: 2 * COUNT, samples: COUNT / 2 })
})

async function startStorage(world: World, ...words: readonly string[]) {
  const running = world.start(['feed', 'storage', 'samples', '--listen', '127.0.0.1:0', '--json', ...words])
  let text = ''
  for await (const chunk of running.process.stdout!) {
    text += chunk
    try {
      const { port } = JSON.parse(text)
      return { running, address: { host: '127.0.0.1', port: Number(port) } }
    } catch {} // it has not said all yet
  }
  throw new Error((await running.finished).stderr)
}

test('storage nodes with a stripe each are read as one, and the source when one of them is killed', async (context) => {
  const world = await makeSamplesWorld(context)
  const nodes = await Promise.all(['0/2', '1/2'].map((stripe) => startStorage(world, '--stripe', stripe)))
  const feed = await open(world, {
    from: nodes.map(({ address }) => address),
    layout: 'striped',
    fallback: 'flowers',
    split: 'train',
    isCarrying: false,
  })
  assert.deepEqual(await readPass(feed), expected(0))
  const kill = (step: number) => step === 7 && nodes[1]!.running.process.kill('SIGKILL')
  assert.deepEqual(await readPass(feed, kill), expected(1))
})

/** `dsc feed serve` on a socket, once it answers. */
async function startServe(world: World, socket: string, target = 'samples'): Promise<Running> {
  const words = ['--socket', socket, '--seed', `${SEED}`, '--memory', '512KiB', '--json']
  const running = world.start(['feed', 'serve', target, ...words])
  await once(running.process.stdout!, 'data') // its socket
  return running
}

test('a feed of another process that is killed in mid-epoch is an error with the state to go on from', async (context) => {
  const world = await makeSamplesWorld(context)
  const socket = join(world.directory, 'feed.sock')
  const running = await startServe(world, socket)
  const feed = await open(world, { socket })
  assert.deepEqual(await readPass(feed), expected(0))
  const received: number[] = []
  let state: FeedState | undefined
  await assert.rejects(
    async () => {
      for await (const batch of feed) {
        received.push(...batch.map(({ id }) => id))
        if (received.length === 7 * BATCH) running.process.kill('SIGKILL')
      }
    },
    (error: DscError & { state?: FeedState }) => {
      state = error.state
      return isDscError(error, 'FEED_GONE') && /samples of epoch 1 were received/.test(error.message)
    },
  )
  assert.ok(received.length < COUNT)
  assert.deepEqual([state!.epoch, state!.position], [1, received.length])
  assert.deepEqual(state, feed.state())
  await running.finished
  await assert.rejects(readPass(feed), { code: 'FEED_GONE' }, 'none is there yet')
  await startServe(world, socket)
  feed.seek(state!)
  assert.deepEqual([...received, ...(await readPass(feed))], expected(1))
  const other = await open(world, { dataset: join(world.directory, 'samples') })
  other.seek(state!)
  assert.deepEqual([...received, ...(await readPass(other))], expected(1), 'a feed in this process, too')
})

test('ranks in several programs share the feed behind a socket', async (context) => {
  const world = await makeSamplesWorld(context)
  const socket = join(world.directory, 'feed.sock')
  await startServe(world, socket)
  const ranks = await Promise.all(
    [0, 1].map((rank) => open(world, { socket, rank, world: 2, batchSize: BATCH / 2 })),
  )
  for (let epoch = 0; epoch < 2; epoch++) {
    const [even, odd] = await Promise.all(ranks.map((feed) => readPass(feed)))
    const half = BATCH / 2
    const steps = Array.from({ length: COUNT / BATCH }, (_, step) => step * half)
    const whole = steps.flatMap((at) => [...even!.slice(at, at + half), ...odd!.slice(at, at + half)])
    assert.deepEqual(whole, expected(epoch))
  }
})

test('a feed that is stopped counts as gone after its time, and an aborted iteration ends', async (context) => {
  const world = await makeSamplesWorld(context)
  const socket = join(world.directory, 'feed.sock')
  const running = await startServe(world, socket)
  const abort = new AbortController()
  const feed = await open(world, { socket, timeoutMs: 5000, signal: abort.signal })
  const stop = (step: number) => step === 2 && running.process.kill('SIGSTOP')
  await assert.rejects(readPass(feed, stop), { code: 'FEED_GONE' })
  running.process.kill('SIGCONT')
  await assert.rejects(
    readPass(feed, (step) => step === 2 && abort.abort()),
    (error: Error) => error.name === 'AbortError',
  )
})

test('what cannot be meant is refused before anything is opened', async (context) => {
  const world = await makeSamplesWorld(context)
  const from = [{ host: '127.0.0.1', port: 9 }]
  for (const options of [
    {},
    { dataset: 'flowers', from },
    { dataset: 'flowers', mix: {} },
    { socket: '/s', from },
  ])
    await assert.rejects(open(world, options), { code: 'USAGE' })
  await assert.rejects(open(world, { dataset: 'roses' }), { code: 'DATASET_UNKNOWN' })
})
