import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { OnSample, ReadRequest, SampleSource } from '../../samples/sample-source.js'
import { SampleTableBuilder } from '../../samples/sample-table-builder.js'
import { openReaderPool, type ReaderPool } from '../threads/reader-pool.js'
import { FeedEngine } from './feed-engine.js'

const COUNT = 640
const BATCH = 16

/** A feed whose samples arrive at once. It learns which samples an epoch keeps when `tell` is called. */
function open(context: TestContext) {
  const samples = new SampleTableBuilder()
  for (let i = 0; i < COUNT; i++) samples.add({ name: `${i}`, file: 0, offset: 0, length: 60, crc32: 0 })
  const source: SampleSource = {
    table: samples.build([]),
    layout: 'full',
    origin: 'local',
    nodeCount: 1,
    nodeName: () => 'memory',
    read: async (request: ReadRequest, onSample: OnSample) =>
      request.samples.forEach((_, i) => void onSample(i, 'ok')),
    close: async () => {},
  }
  const threads = openReaderPool({ arenaFd: -1 }, 1)
  let tell = () => {}
  const told = new Promise<void>((resolve) => {
    tell = resolve
  })
  const pool: ReaderPool = {
    async run(job) {
      if (job.kind === 'prefix') await told
      return await threads.run(job)
    },
    close: () => threads.close(),
  }
  const nothing = () => {}
  const arenaFile = {
    fd: -1,
    bytes: 64 * 400,
    nonce: '',
    path: '',
    move: nothing,
    read: nothing,
    poison: nothing,
    close: nothing,
  }
  const engine = new FeedEngine({
    source,
    pool,
    arenaFile,
    seed: 1,
    orderKind: 'shuffle',
    k: 8,
    requestBytes: 4096,
    eviction: 'lazy',
    isCarrying: true,
    isConformance: false,
    nowMs: () => performance.now(),
  })
  context.after(() => engine.close())
  const stream = engine.openStream({ batchSize: BATCH, world: 1, rank: 0, replicate: 1, last: 'drop' }, 2)
  return { engine, stream, tell }
}

test('batches come before it is known what is kept of them, and it is kept all the same', async (context) => {
  const late = open(context)
  const early = open(context)
  early.tell()
  const kept: number[] = []
  for (const { engine, stream, tell } of [late, early]) {
    await engine.ready()
    await stream.start(0, 0)
    for (let step = 0; step < stream.sequence.stepsPerEpoch; step++) {
      stream.release(await stream.read(0, step))
      if (step > 3) tell()
    }
    const first = await stream.read(1, 0)
    assert.equal(stream.isGivingBack, false, 'an epoch begins when all of the one before is given back')
    stream.release(first)
    for (let step = 1; step < stream.sequence.stepsPerEpoch; step++)
      stream.release(await stream.read(1, step))
    kept.push(stream.counts.kept)
  }
  assert.ok(kept[0]! > 50)
  assert.equal(kept[0], kept[1])
})

test('a batch that is given back before then lies where it was', async (context) => {
  const { engine, stream, tell } = open(context)
  await engine.ready()
  await stream.start(0, 0)
  const held = await stream.read(0, 0)
  stream.release(held)
  assert.ok(stream.isGivingBack)
  const { extents } = engine.arena.space
  assert.ok(held.slots.every(({ extent }) => extents.stateOf(extent!) === 'leased'))
  tell()
  while (stream.isGivingBack) await nextTurn()
  assert.ok(held.slots.every(({ extent }) => extent === undefined))
})
