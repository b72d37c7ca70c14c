import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { indexSamples } from '../../samples/index-samples.js'
import { makeTestFolder, verifiedIds, writeSamples } from '../../testing/sample-folder.js'
import { shuffleSamples } from '../plan/order.js'
import { folderSupply } from '../sources/folder-supply.js'
import type { BatchStream } from '../stream/batch-stream.js'
import type { LeasedBatch } from '../stream/leased-batch.js'
import type { FeedEngine } from './feed-engine.js'
import type { FeedSettings } from './feed-settings.js'
import { openFeedEngine } from './open-feed-engine.js'

const COUNT = 400
const lengthOf = (id: number) => 500 + ((id * 37) % 700)

async function open(
  context: TestContext,
  settings: FeedSettings,
): Promise<{ engine: FeedEngine; root: string }> {
  const folder = makeTestFolder(context)
  const root = join(folder, 'samples')
  writeSamples(root, COUNT, lengthOf)
  const engine = openFeedEngine(
    folderSupply(await indexSamples(root, { cacheFolder: join(folder, 'cache') })),
    {
      threads: 1,
      ...settings,
    },
  )
  context.after(() => engine.close())
  return { engine, root }
}

/** Returns the ids of one epoch, after comparing every byte of every sample. */
async function readEpoch(
  engine: FeedEngine,
  stream: BatchStream,
  epoch: number,
  held = 0,
): Promise<number[]> {
  const ids: number[] = []
  const leases: LeasedBatch[] = []
  for (let step = 0; step < stream.sequence.batchesPerEpoch; step++) {
    const batch = await stream.read(epoch, step)
    ids.push(...verifiedIds(engine, batch, lengthOf))
    leases.push(batch)
    if (leases.length > held) stream.release(leases.shift()!)
  }
  for (const batch of leases) stream.release(batch)
  return ids
}

const RANK = { batchSize: 16, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
const orderOf = (epoch: number) => [...shuffleSamples({ sampleCount: COUNT, seed: 5, epoch })]

for (const { name, settings } of [
  { name: 'with much memory', settings: { memoryBytes: 2 ** 20 } },
  { name: 'with little memory', settings: { memoryBytes: 120_000 } },
  { name: 'without carrying over', settings: { memoryBytes: 2 ** 20, isCarrying: false } },
  { name: 'with k = 1', settings: { memoryBytes: 2 ** 20, k: 1 } },
  { name: 'with compaction at every threshold', settings: { memoryBytes: 90_000, eviction: 'patent' } },
  { name: 'in conformance mode', settings: { memoryBytes: 2 ** 20, k: 8, isConformance: true } },
] as const) {
  test(`a feed ${name} delivers three epochs in their order, every byte right`, async (context) => {
    const { engine } = await open(context, { seed: 5, ...settings })
    const stream = engine.openStream(RANK, 3)
    for (let epoch = 0; epoch < 3; epoch++)
      assert.deepEqual(await readEpoch(engine, stream, epoch, 1), orderOf(epoch))
  })
}

test('with Cache_next for P samples, later epochs begin with P hits and read n − P', async (context) => {
  const { engine } = await open(context, { seed: 5, memoryBytes: 200_000, k: 8 })
  const stream = engine.openStream(RANK, 2)
  await readEpoch(engine, stream, 0)
  const first = { ...stream.counts }
  for (let epoch = 1; epoch < 4; epoch++) {
    const before = { ...stream.counts }
    let firstRun = -1
    for (let step = 0; step < stream.sequence.stepsPerEpoch; step++) {
      stream.release(await stream.read(epoch, step))
      if (firstRun < 0 && stream.counts.kept - before.kept < 16 * (step + 1))
        firstRun = stream.counts.kept - before.kept
    }
    const kept = stream.counts.kept - before.kept
    assert.ok(kept > 50, `${kept} samples kept`)
    assert.equal(firstRun, kept, 'the hits come in one run, at the start')
  }
  // A request at the end of an epoch may hold samples of the next one.
  const requested = stream.counts.requested - first.requested
  const expected = 3 * COUNT - (stream.counts.kept - first.kept)
  assert.ok(Math.abs(requested - expected) < 8, `${requested} requested, not ${expected}`)
  assert.equal(stream.counts.carryRefused, 0)
  assert.equal(engine.arena.counts.movedBytes, 0)
})

test('one of four machines fills Cache_next, though it reads only a quarter of the next prefix', async (context) => {
  const { engine } = await open(context, { seed: 5, memoryBytes: 64_000, k: 4 })
  const stream = engine.openStream({ ...RANK, batchSize: 4, world: 4 }, 1)
  const room = Math.floor(engine.budget.carryBytes / 900) // samples take 512 to 1,216 bytes
  assert.ok(room >= 30 && room <= 60, `room for ${room} of the 100 samples that it reads in an epoch`)
  await stream.start(0, 0)
  for (let epoch = 0; epoch < 10; epoch++) await readEpoch(engine, stream, epoch)
  const perEpoch = stream.counts.kept / 9
  assert.ok(perEpoch > 20 && perEpoch < 30, `${perEpoch} of 25 that are in both shares were kept`)
})

test('in conformance mode the requests are exactly the sum of ceil(n / k), and hits are 1 − 1/k', async (context) => {
  const { engine } = await open(context, {
    seed: 5,
    memoryBytes: 2 ** 20,
    k: 8,
    isConformance: true,
    isCarrying: false,
  })
  const stream = engine.openStream(RANK, 2)
  await readEpoch(engine, stream, 0)
  assert.equal(stream.counts.requests, COUNT / 8)
  assert.equal(stream.counts.misses, COUNT / 8)
  assert.equal(stream.counts.hits, COUNT - COUNT / 8)
})

test('two ranks of one machine together read each global batch, sharing memory and Cache_next', async (context) => {
  const { engine } = await open(context, { seed: 5, memoryBytes: 300_000 })
  const streams = [0, 1].map((rank) => engine.openStream({ ...RANK, batchSize: 8, world: 2, rank }, 2))
  for (let epoch = 0; epoch < 3; epoch++) {
    const halves = await Promise.all(streams.map((stream) => readEpoch(engine, stream, epoch)))
    const steps = streams[0]!.sequence.stepsPerEpoch
    const together = Array.from({ length: steps }, (_, step) =>
      halves.flatMap((ids) => ids.slice(8 * step, 8 * step + 8)),
    ).flat()
    assert.deepEqual(together, orderOf(epoch))
  }
})

test('a rank that has stopped does not fill Cache_next with samples that it will never take', async (context) => {
  const { engine } = await open(context, { seed: 5, memoryBytes: 120_000, k: 4 })
  const [stopped, reading] = [0, 1].map((rank) =>
    engine.openStream({ ...RANK, batchSize: 4, world: 2, rank }, 1),
  )
  stopped!.release(await stopped!.read(0, 0))
  let before = 0
  for (let epoch = 0; epoch < 12; epoch++) {
    before = reading!.counts.kept
    await readEpoch(engine, reading!, epoch)
  }
  assert.ok(reading!.counts.kept - before > 5, `${reading!.counts.kept - before} kept in the last epoch`)
  const late = await stopped!.read(0, 1)
  assert.deepEqual(
    late.slots.map((slot) => slot.sample),
    orderOf(0).slice(8, 12),
  )
})

for (const settings of [
  { memoryBytes: 2 ** 20 },
  { memoryBytes: 200_000, k: 2 },
  { memoryBytes: 80_000, k: 1 },
]) {
  test(`a stream goes on from any epoch and step, forwards and backwards: ${JSON.stringify(settings)}`, async (context) => {
    const { engine } = await open(context, { seed: 5, ...settings })
    const stream = engine.openStream(RANK, 2)
    for (const [epoch, step] of [
      [0, 3],
      [0, 4],
      [0, 9],
      [2, 7],
      [0, 0],
      [0, 0],
      [1, 24],
    ] as const) {
      await stream.start(epoch, step)
      for (let at = step; at < Math.min(step + 2, 25); at++) {
        const batch = await stream.read(epoch, at)
        assert.deepEqual(
          batch.slots.map((slot) => slot.sample),
          orderOf(epoch).slice(16 * at, 16 * at + 16),
        )
        stream.release(batch)
      }
    }
  })
}

test('samples that no last batch took are read, not missed, when the next epoch begins with them', async (context) => {
  const { engine } = await open(context, { seed: 5, memoryBytes: 2 ** 20 })
  const stream = engine.openStream({ ...RANK, batchSize: 150 }, 1)
  await stream.start(0, 0)
  for (let epoch = 0; epoch < 4; epoch++) await readEpoch(engine, stream, epoch)
  assert.equal(stream.counts.misses, 0)
})

test('a batch far ahead finds room, because samples that are needed last give way', async (context) => {
  const settings = { seed: 5, memoryBytes: 46_000, isCarrying: false }
  const { engine } = await open(context, settings)
  const stream = engine.openStream(RANK, 0)
  const first = await stream.read(0, 0)
  stream.release(first)
  await new Promise((resolve) => setTimeout(resolve, 100)) // until prefetching has filled all it may
  for (const step of [20, 12, 3]) {
    const batch = await stream.read(0, step)
    assert.deepEqual(
      batch.slots.map((slot) => slot.sample),
      orderOf(0).slice(16 * step, 16 * step + 16),
    )
    stream.release(batch)
  }
})

test('a damaged sample is named, never delivered', async (context) => {
  const { engine, root } = await open(context, { seed: 5, memoryBytes: 2 ** 20 })
  const victim = orderOf(0)[100]!
  writeFileSync(join(root, `${String(victim).padStart(6, '0')}.bin`), Buffer.alloc(lengthOf(victim)))
  const stream = engine.openStream(RANK, 2)
  await assert.rejects(readEpoch(engine, stream, 0), {
    code: 'FEED_SAMPLE_LOST',
    message: new RegExp(`sample ${victim} .* is corrupt`),
  })
})

test('where lost samples are skipped, their batches come without them and say so', async (context) => {
  const { engine, root } = await open(context, { seed: 5, memoryBytes: 2 ** 20 })
  const victims = [orderOf(0)[100]!, orderOf(0)[103]!]
  for (const victim of victims)
    writeFileSync(join(root, `${String(victim).padStart(6, '0')}.bin`), Buffer.alloc(lengthOf(victim)))
  const stream = engine.openStream(RANK, 2)
  const ids: number[] = []
  const lost: number[] = []
  for (let step = 0; step < stream.sequence.batchesPerEpoch; step++) {
    const batch = await stream.read(0, step, 'skip')
    ids.push(...batch.slots.map((slot) => slot.sample))
    lost.push(...batch.lost)
    stream.release(batch)
  }
  assert.deepEqual(lost, victims)
  assert.deepEqual(
    ids,
    orderOf(0).filter((sample) => !victims.includes(sample)),
  )
})

test('a batch of which every sample is lost is named, though lost samples are skipped', async (context) => {
  const { engine, root } = await open(context, { seed: 5, memoryBytes: 2 ** 20 })
  for (const victim of orderOf(0).slice(16, 32))
    writeFileSync(join(root, `${String(victim).padStart(6, '0')}.bin`), '')
  const stream = engine.openStream(RANK, 2)
  stream.release(await stream.read(0, 0, 'skip'))
  await assert.rejects(stream.read(0, 1, 'skip'), { code: 'FEED_SAMPLE_LOST' })
})

test('an arena that cannot hold one batch is refused with the size that would do', async (context) => {
  const { engine } = await open(context, { seed: 5, memoryBytes: 10_000 })
  assert.throws(() => engine.openStream(RANK, 2), { code: 'FEED_MEMORY', message: /needs \d+/ })
})

test('clients that hold more than the arena has make the next one fail by name instead of hanging', async (context) => {
  const { engine } = await open(context, {
    seed: 5,
    memoryBytes: 60_000,
    isCarrying: false,
    roomTimeoutMs: 1000,
  })
  const stream = engine.openStream(RANK, 1)
  await stream.start(0, 0)
  const held: LeasedBatch[] = []
  await assert.rejects(
    async () => {
      for (let step = 0; ; step++) held.push(await stream.read(0, step))
    },
    { code: 'FEED_MEMORY' },
  )
  assert.ok(held.length >= 2)
})
