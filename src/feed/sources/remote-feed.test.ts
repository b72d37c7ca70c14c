import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { indexSamples } from '../../samples/index-samples.js'
import { makeTestFolder, writeSamples } from '../../testing/sample-folder.js'
import { COUNT, makeFolder, readAll, relay, serve } from '../../testing/storage-node.js'
import { waitFor } from '../../testing/world.js'
import { openFeedEngine } from '../engine/open-feed-engine.js'
import { shuffleSamples } from '../plan/order.js'
import { nodeSupply } from './node-supply.js'

test('a feed over two stripes delivers the order of one machine', async (context) => {
  const folder = await makeFolder(context)
  const nodes = [
    await serve(context, folder, { stripe: { index: 0, count: 2 } }),
    await serve(context, folder, { stripe: { index: 1, count: 2 } }),
  ]
  const counters = await readAll(context, { nodes, layout: 'striped', fallback: undefined, token: undefined })
  assert.equal(counters.failovers, 0)
  // Half of the samples in each of two epochs, plus those read ahead of the third.
  for (const { counts } of nodes)
    assert.ok(counts.samples >= COUNT && counts.samples < COUNT + 60, `${counts.samples}`)
})

test('a node that dies in mid-epoch is replaced by its replica without a change of order', async (context) => {
  const folder = await makeFolder(context)
  const nodes = [await serve(context, folder), await serve(context, folder)]
  const told: string[] = []
  const onNodeLost = (message: string) => void told.push(message)
  const counters = await readAll(
    context,
    { nodes, layout: 'full', fallback: undefined, token: undefined, onNodeLost },
    (step) => step === 7 && nodes[1]!.close(),
  )
  assert.ok(counters.failovers! > 0)
  assert.equal(told.length, 1, 'once')
  assert.match(told[0]!, /has lost storage node 1 /)
  assert.equal(counters.fallback_samples, 0)
})

test('when all nodes are gone the fallback takes over without a change of order', async (context) => {
  const folder = await makeFolder(context)
  const node = await serve(context, folder)
  const counters = await readAll(
    context,
    { nodes: [node], layout: 'full', fallback: { kind: 'folder', folder }, token: undefined },
    (step) => step === 7 && node.close(),
  )
  assert.ok(counters.fallback_samples! > 0)
})

test('a node that sends damaged bytes is found out by the checksum, and the samples come from its replica', async (context) => {
  const folder = await makeFolder(context)
  const good = await serve(context, folder)
  let seen = 0
  const bad = await relay(context, good, (chunk) => {
    seen += chunk.length
    if (seen > 20_000 && chunk.length > 4000) chunk[chunk.length - 700]! ^= 1
    return chunk
  })
  const counters = await readAll(context, {
    nodes: [bad, good],
    layout: 'full',
    fallback: undefined,
    token: undefined,
  })
  assert.ok(counters.corrupt! > 0)
})

test('a node that falls silent costs one deadline, then its replica answers', async (context) => {
  const folder = await makeFolder(context)
  const good = await serve(context, folder)
  let chunks = 0
  const silent = await relay(context, good, (chunk) => (++chunks > 8 ? undefined : chunk))
  const counters = await readAll(context, {
    nodes: [silent, good],
    layout: 'full',
    fallback: undefined,
    token: undefined,
  })
  assert.ok(counters.failovers! + counters.hedges! > 0)
})

test('a node that is a hundred times slower than its replica is asked on, its missed samples of the replica too', async (context) => {
  const folder = await makeFolder(context)
  const good = await serve(context, folder)
  const slow = await relay(context, good, (chunk) => chunk, 150)
  const counters = await readAll(context, {
    nodes: [slow, good],
    layout: 'full',
    fallback: undefined,
    token: undefined,
  })
  assert.ok(counters.hedges! > 0)
  assert.deepEqual([counters.failovers, counters.breakers_opened, counters.corrupt], [0, 0, 0])
})

test('what a client that goes elsewhere in the epoch no longer needs is cancelled on its way', async (context) => {
  const folder = await makeFolder(context)
  const node = await serve(context, folder)
  const far = await relay(context, node, (chunk) => chunk, 100)
  const engine = openFeedEngine(
    await nodeSupply({ nodes: [far], layout: 'full', fallback: undefined, token: undefined }),
    { seed: 9, memoryBytes: 2 ** 20, k: 16, threads: 1, isCarrying: false },
  )
  context.after(() => engine.close())
  const rank = { batchSize: 10, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const stream = engine.openStream(rank, 2)
  await stream.start(0, 0)
  while (node.counts.requests === 0) await sleep(2)
  await stream.start(0, 25)
  const batch = await stream.read(0, 25)
  assert.equal(node.counts.cancelled, 2)
  const order = shuffleSamples({ sampleCount: COUNT, seed: 9, epoch: 0 })
  assert.deepEqual(
    batch.slots.map((slot) => slot.sample),
    [...order.subarray(250, 260)],
  )
  assert.equal(engine.source.counters!().failovers, 0)
})

test('requests to a far node grow to what its answers are measured to cost, and the order stays', async (context) => {
  const folder = makeTestFolder(context)
  writeSamples(join(folder, 'samples'), COUNT, () => 40_000)
  const samples = await indexSamples(join(folder, 'samples'), { cacheFolder: join(folder, 'cache') })
  const far = await relay(context, await serve(context, samples), (chunk) => chunk, 30)
  const engine = openFeedEngine(
    await nodeSupply({ nodes: [far], layout: 'full', fallback: undefined, token: undefined }),
    { seed: 9, memoryBytes: 2 ** 25, threads: 1, isCarrying: false },
  )
  context.after(() => engine.close())
  const rank = { batchSize: 10, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const stream = engine.openStream(rank, 2)
  const before = engine.budget.k
  const kFrom = () => engine.sizing.from
  assert.equal(kFrom(), 'size')
  for (let epoch = 0; epoch < 4 || kFrom() !== 'measured'; epoch++) {
    const ids: number[] = []
    for (let step = 0; step < 30; step++) {
      const batch = await stream.read(epoch, step)
      ids.push(...batch.slots.map((slot) => slot.sample))
      stream.release(batch)
    }
    assert.deepEqual(ids, [...shuffleSamples({ sampleCount: COUNT, seed: 9, epoch })])
  }
  assert.ok(engine.sizing.cost()!.fixedMs >= 25)
  assert.ok(engine.budget.k > before, `k = ${engine.budget.k}, it was ${before}`)
})

test('a node that was too slow with a missed sample is told to leave it when nothing else was asked for', async (context) => {
  const folder = await makeFolder(context)
  const [good, late] = [await serve(context, folder), await serve(context, folder)]
  // It greets at once, and answers after the other node, however busy this machine is.
  const delayMs = () => (late.counts.requests > 0 ? 5_000 : 0)
  const slow = await relay(context, late, (chunk) => chunk, delayMs)
  const engine = openFeedEngine(
    await nodeSupply({ nodes: [slow, good], layout: 'full', fallback: undefined, token: undefined }),
    { seed: 9, memoryBytes: 2 ** 20, k: 1, threads: 1, isConformance: true, isCarrying: false },
  )
  context.after(() => engine.close())
  const rank = { batchSize: 10, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const stream = engine.openStream(rank, 2)
  await stream.start(0, 0)
  stream.release(await stream.read(0, 0))
  const { hedges, failovers } = engine.source.counters!()
  assert.ok(hedges! > 0)
  assert.equal(failovers, 0)
  await waitFor('a cancelled request', () => late.counts.cancelled > 0)
})
