import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openTestFeedClient } from '../../testing/feed-client.js'
import { makeSampleFolder, openMemoryEngine } from '../../testing/memory-samples.js'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { waitFor } from '../../testing/world.js'
import { SessionServer } from '../session/session-server.js'
import type { LeasedBatch } from '../stream/leased-batch.js'
import { formatMetrics } from './feed-metrics.js'
import type { FeedSettings } from './feed-settings.js'

const COUNT = 120
const BYTES = 640
const RANK = { batchSize: 10, world: 1, rank: 0, replicate: 1, last: 'drop' } as const

async function openNodes(context: TestContext, settings: FeedSettings, slownessMs = 2) {
  const folder = makeTestFolder(context)
  const { table } = await makeSampleFolder(folder, COUNT, () => BYTES)
  const engine = openMemoryEngine(
    table,
    { seed: 1, threads: 1, ...settings },
    { nodeCount: 2, layout: 'striped', slownessMs, seed: 1 },
  )
  context.after(() => engine.close())
  return { engine, folder }
}

/** `name{labels}` → value. */
const parse = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text
      .trimEnd()
      .split('\n')
      .filter((line) => !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )

async function readEpochs(context: TestContext, settings: FeedSettings, epochs: number) {
  const { engine } = await openNodes(context, settings)
  const stream = engine.openStream(RANK, 2)
  const metrics = () => {
    const text = formatMetrics({
      engine,
      ranks: [{ rank: 0, stream, clients: 1, skipped: 0 }],
      uptimeSeconds: 1,
    })
    const values = parse(text)
    return (name: string): number => {
      const value = values.get(`dsc_feed_${name}`)
      assert.ok(value !== undefined, `${name} is not among the metrics`)
      return value
    }
  }
  await stream.start(0, 0)
  let held: LeasedBatch | undefined
  for (let epoch = 0; epoch < epochs; epoch++)
    for (let step = 0; step < 12; step++) {
      if (held) stream.release(held)
      held = await stream.read(epoch, step)
    }
  return { stream, held: held!, metrics }
}

test('requests are counted per node, with their durations in classes that add up', async (context) => {
  const { stream, metrics } = await readEpochs(context, { memoryBytes: 2 ** 20, isCarrying: false }, 2)
  const countsNow = () => [0, 1].map((node) => metrics()(`request_seconds_count{node="${node}"}`))
  // Some requests were made ahead and are still unanswered.
  const counts = await waitFor('all answers', () => {
    const now = countsNow()
    return now[0]! + now[1]! === stream.counts.requests && now
  })
  const value = metrics()
  for (const node of [0, 1]) {
    const classes = ['0.001', '0.005', '0.05', '5', '+Inf'].map((le) =>
      value(`request_seconds_bucket{node="${node}",le="${le}"}`),
    )
    assert.deepEqual(
      classes,
      classes.toSorted((a, b) => a - b),
    )
    assert.equal(classes.at(-1), counts[node])
    assert.ok(value(`request_seconds_sum{node="${node}"}`) > 0)
  }
  const bytes = [0, 1].map((node) => value(`read_bytes_total{node="${node}",source="peer"}`))
  assert.equal(bytes[0]! + bytes[1]!, BYTES * stream.counts.requested)
  assert.equal(value('bytes_delivered_total{rank="0"}'), 2 * COUNT * BYTES)
  assert.ok(value('stall_seconds_total{rank="0",cause="storage"}') > 0)
  assert.ok(value('time_to_first_batch_seconds{rank="0"}') > 0)
  const origins = ['given', 'request', 'size', 'measured'].map((from) => value(`k_from{from="${from}"}`))
  assert.deepEqual(origins, [0, 0, 1, 0])
  assert.equal(value('request_bytes'), 4 * 2 ** 20)
})

test('each family of metrics stands together under its type, as Prometheus wants it', async (context) => {
  const { engine } = await openNodes(context, { memoryBytes: 2 ** 20 })
  const ranks = [0, 1].map((rank) => ({
    rank,
    clients: 1,
    skipped: 0,
    stream: engine.openStream({ ...RANK, batchSize: 5, world: 2, rank }, 1),
  }))
  const text = formatMetrics({ engine, ranks, uptimeSeconds: 1 })
  const seen = new Set<string>()
  let family = ''
  let helped = ''
  for (const line of text.trimEnd().split('\n')) {
    const [, explained] = /^# HELP (\S+) \S/.exec(line) ?? []
    if (explained !== undefined) {
      helped = explained
      continue
    }
    const [, name, type] = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line) ?? []
    if (name === undefined) assert.match(line, new RegExp(`^${family}[{ _]`))
    else {
      assert.ok(!seen.has(name), `${name} comes twice`)
      assert.equal(type === 'counter', name.endsWith('_total'))
      assert.equal(helped, name)
      seen.add(name)
      family = name
    }
  }
  assert.ok(seen.has('dsc_feed_request_seconds'))
})

test('what clients hold, what is ready and what is kept for the next epoch is shown as it is', async (context) => {
  const { stream, held, metrics } = await readEpochs(context, { memoryBytes: 120_000 }, 2)
  /** Samples being copied to Cache_next stay leased until they are there. */
  const settle = (leasedBytes: number) =>
    waitFor(`${leasedBytes} leased bytes`, () => metrics()('arena_leased_bytes') === leasedBytes)
  await settle(10 * BYTES)
  stream.release(held)
  await settle(0)
  const value = metrics()
  assert.ok(value('next_bytes{list="nex"}') > 0)
  assert.equal(value('next_bytes{list="cur"}'), 0, 'the list of the running epoch is used up at its end')
  assert.equal(value('ready_batches{rank="0"}'), stream.countReadyBatches())
  assert.ok(value('epoch_gap_seconds{rank="0"}') >= 0)
})

test('waiting for memory that clients hold is a stall of the arena, not of storage', async (context) => {
  const { engine } = await openNodes(context, { memoryBytes: 40_000, isCarrying: false }, 0)
  const stream = engine.openStream(RANK, 1)
  await stream.start(0, 0)
  const held: LeasedBatch[] = []
  let next = stream.read(0, 0)
  for (let step = 1; ; step++) {
    const batch = await Promise.race([next, sleep(2000)])
    if (!batch) break
    held.push(batch)
    next = stream.read(0, step)
  }
  assert.equal(stream.meter.stallMs.arena_full, 0)
  for (const batch of held) stream.release(batch)
  await next
  assert.ok(stream.meter.stallMs.arena_full > 0)
})

test('a client that has all batches it asked for and takes none is the cause of its own stall', async (context) => {
  const { engine, folder } = await openNodes(context, { memoryBytes: 2 ** 20 }, 0)
  const server = await SessionServer.open({ engine, socketPath: join(folder, 's') })
  context.after(() => server.close())
  const client = await openTestFeedClient(server.socketPath, { batch: 10, depth: 2 })
  for await (const { step } of client.read({})) if (step === 3) await sleep(500)
  const client0 = 'dsc_feed_stall_seconds_total{rank="0",cause="client"}'
  assert.ok(parse(server.statusText()).get(client0)! > 0.02)
  client.close()
})
