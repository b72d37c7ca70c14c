import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { SampleTable } from '../../samples/sample-table.js'
import { planRankSequence } from '../plan/rank-sequence.js'
import type { ReaderJob, ReaderResult } from '../threads/reader-thread.js'
import { MappedStream } from './mapped-stream.js'
import { PageTouch } from './page-touch.js'

const COUNT = 640
const BYTES = 1000
const table = {
  count: COUNT,
  lengths: new Uint32Array(COUNT).fill(BYTES),
  offsets: new Uint32Array(COUNT),
} as unknown as SampleTable

/** Counts reads, which come from the disk while `isShort` returns true. */
function makePool(isShort = () => false) {
  const pool = {
    touched: 0,
    async run(job: ReaderJob): Promise<ReaderResult> {
      assert.equal(job.kind, 'touch')
      if (job.kind !== 'touch') throw new Error('never')
      pool.touched += job.samples.length
      return { kind: 'touch', statuses: new Uint8Array(job.samples.length), isFromDisk: isShort() }
    },
    close: async () => {},
  }
  return pool
}

const batches = Array.from({ length: COUNT / 8 }, (_, i) =>
  Uint32Array.from({ length: 8 }, (__, j) => 8 * i + j),
)

/** A stream over the batches, and the epoch and step of each that it has planned. */
function openStream(touch: PageTouch, ranks: number) {
  const shape = { sampleCount: COUNT, batchSize: 8, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const planned: string[] = []
  const items = {
    sequence: planRankSequence(shape),
    findBatch(epoch: number, step: number) {
      planned.push(`${epoch}/${step}`)
      return { samples: batches[step], positions: Array.from({ length: 8 }, (_, i) => 8 * step + i) }
    },
  }
  const stream = new MappedStream({
    items: items as never,
    epochs: { enter: () => undefined } as never,
    source: { table, nodeName: () => 'here' },
    touch,
    countRanks: () => ranks,
    nowMs: () => 0,
  })
  return { stream, planned }
}

test('once memory turns out too short to keep all pages everything is read ahead, until it no longer is', async () => {
  let isShort = false
  const pool = makePool(() => isShort)
  const touch = new PageTouch({ table, pool, memoryBytes: undefined })
  const epoch = async () => {
    const before = pool.touched
    for (const batch of batches) await touch.touch(batch)
    return pool.touched - before
  }
  assert.equal(await epoch(), COUNT, 'the first epoch')
  assert.equal(await epoch(), 8 * Math.floor(batches.length / 32), 'probes')
  isShort = true
  await epoch()
  assert.equal(await epoch(), COUNT, 'pages were given up')
  isShort = false
  assert.ok((await epoch()) < COUNT / 8, 'they are kept again')
})

test('no more is read ahead than the memory of the feed, shared by its ranks', async () => {
  for (const ranks of [1, 2]) {
    const pool = makePool()
    const touch = new PageTouch({ table, pool, memoryBytes: 80 * BYTES })
    const { stream } = openStream(touch, ranks)
    await stream.start(0, 0)
    for (let i = 0; i < 20; i++) await nextTurn()
    assert.equal(pool.touched, 80 / ranks)
    for (let step = 0; step < 3; step++) await stream.read(0, step)
    for (let i = 0; i < 20; i++) await nextTurn()
    assert.equal(pool.touched, 80 / ranks + 24)
    assert.equal(stream.countReadyBatches(), 10 / ranks)
  }
})

test('a pass begins before its batches are planned, of which each turn plans a part', async () => {
  const touch = new PageTouch({ table, pool: makePool(), memoryBytes: undefined })
  const { stream, planned } = openStream(touch, 1)
  await stream.start(0, 0)
  assert.equal(planned.length, 0)
  await nextTurn()
  assert.equal(planned.length, 128)
})

test('a pass that goes on where the last one ended keeps what is planned, another does not', async () => {
  const touch = new PageTouch({ table, pool: makePool(), memoryBytes: undefined })
  const { stream, planned } = openStream(touch, 1)
  await stream.start(0, 78)
  for (let i = 0; i < 20; i++) await nextTurn()
  for (const step of [78, 79]) await stream.read(0, step)
  await stream.start(1, 0)
  for (let step = 0; step < 80; step++)
    assert.equal((await stream.read(1, step)).slots[0]?.serial, 640 + 8 * step)
  assert.equal(new Set(planned).size, planned.length, 'one is planned twice')
  await stream.start(1, 0)
  await stream.read(1, 0)
  assert.equal(planned.filter((each) => each === '1/0').length, 2)
  stream.close()
})
