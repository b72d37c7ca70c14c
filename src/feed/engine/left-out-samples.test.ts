import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { SampleSource } from '../../samples/sample-source.js'
import { tableFiles } from '../../samples/sample-table.js'
import { SampleTableBuilder } from '../../samples/sample-table-builder.js'
import { openFeedEngine } from './open-feed-engine.js'

const SAMPLE_BYTES = 64
const BATCH = 200
const LEFT_OUT = 142

/** The requests of the second epoch, all of whose samples but those left out by the first are kept from it. */
async function countRequests(context: TestContext, isConformance: boolean): Promise<number> {
  const sampleCount = 25 * BATCH + LEFT_OUT
  const builder = new SampleTableBuilder()
  for (let i = 0; i < sampleCount; i++)
    builder.add({ name: `${i}`, file: i, offset: 0, length: SAMPLE_BYTES, crc32: 0 })
  const names = Array.from({ length: sampleCount }, (_, i) => `${i}`)
  const table = builder.build(tableFiles({ format: 'file' }, names))
  let requests = 0
  const source: SampleSource = {
    table,
    layout: 'striped',
    origin: 'peer',
    nodeCount: 1,
    nodeName: () => 'node 0',
    async read({ samples }, onSample) {
      requests++
      await nextTurn()
      for (let i = 0; i < samples.length; i++) onSample(i, 'ok')
    },
    close: async () => {},
  }
  const engine = openFeedEngine(
    { table, folder: undefined, makeSource: () => source },
    { seed: 5, threads: 1, isConformance, isCarrying: true, k: 50, memoryBytes: 16 << 20 },
  )
  context.after(() => engine.close())
  const stream = engine.openStream({ batchSize: BATCH, world: 1, rank: 0, replicate: 1, last: 'drop' }, 2)
  for (let epoch = 0; epoch < 2; epoch++) {
    if (epoch === 1) requests = 0
    for (let step = 0; step < stream.sequence.batchesPerEpoch; step++)
      stream.release(await stream.read(epoch, step))
  }
  return requests
}

test('samples that an epoch left out come in requests of k in the next, to the letter', async (context) => {
  assert.equal(await countRequests(context, true), Math.ceil(LEFT_OUT / 50))
})

test('samples that an epoch left out come in requests of k, and those of a first batch before it', async (context) => {
  const requests = await countRequests(context, false)
  assert.ok(requests <= 2 * Math.ceil(LEFT_OUT / 50), `${requests} requests`)
})
