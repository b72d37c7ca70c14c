import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { SampleSource } from '../../samples/sample-source.js'
import { tableFiles } from '../../samples/sample-table.js'
import { SampleTableBuilder } from '../../samples/sample-table-builder.js'
import type { LeasedBatch } from '../stream/leased-batch.js'
import type { FeedEngine } from './feed-engine.js'
import { openFeedEngine } from './open-feed-engine.js'

const SAMPLE_BYTES = 64
const CLIENT_BATCHES = 3

interface Setting {
  readonly sampleCount: number
  readonly k: number
  readonly nodeCount: number
  readonly batchSize: number
  readonly memoryBytes: number
  /** Size of a sample, in bytes. */
  readonly lengthOf: (sample: number) => number
}

/**
 * Follows the text of seed 000. Used samples are evicted when their room is needed, and the rest is compacted, so a
 * sample can be stored while stored unused samples leave room for it.
 */
function simulate(epochs: readonly (readonly number[])[], setting: Setting, spaceBytes: number): number[][] {
  const requests: number[][] = []
  for (const order of epochs) {
    const lists = new Map<number, number[]>()
    for (const sample of order)
      lists.set(sample % setting.nodeCount, [...(lists.get(sample % setting.nodeCount) ?? []), sample])
    const stored = new Set<number>()
    let storedBytes = 0
    for (const current of order) {
      if (stored.delete(current)) {
        storedBytes -= setting.lengthOf(current)
        continue
      }
      const list = lists.get(current % setting.nodeCount)!
      const request = [list.shift()!]
      while (request.length < setting.k && list.length > 0) {
        if (storedBytes + setting.lengthOf(list[0]!) > spaceBytes) break
        stored.add(list[0]!)
        storedBytes += setting.lengthOf(list[0]!)
        request.push(list.shift()!)
      }
      requests.push(request)
    }
  }
  return requests
}

/** Storage nodes that answer later, with the last sample first. */
function openFeed(context: TestContext, setting: Setting) {
  const { sampleCount, nodeCount, lengthOf } = setting
  const builder = new SampleTableBuilder()
  for (let i = 0; i < sampleCount; i++)
    builder.add({ name: `${i}`, file: i, offset: 0, length: lengthOf(i), crc32: 0 })
  const names = Array.from({ length: sampleCount }, (_, i) => `${i}`)
  const table = builder.build(tableFiles({ format: 'file' }, names))
  const requests: number[][] = []
  const source: SampleSource = {
    table,
    layout: 'striped',
    origin: 'peer',
    nodeCount,
    nodeName: (node) => `node ${node}`,
    async read({ samples }, onSample) {
      requests.push([...samples])
      await nextTurn()
      for (let i = samples.length - 1; i >= 0; i--) onSample(i, 'ok')
    },
    close: async () => {},
  }
  const engine = openFeedEngine(
    { table, folder: undefined, makeSource: () => source },
    { seed: 5, threads: 1, isConformance: true, isCarrying: false, ...setting },
  )
  context.after(() => engine.close())
  return { engine, requests }
}

/** Reads two epochs like a client that holds several batches; returns the order of each. */
async function readEpochs(engine: FeedEngine, { batchSize }: Setting): Promise<number[][]> {
  const stream = engine.openStream(
    { batchSize, world: 1, rank: 0, replicate: 1, last: 'uneven' },
    CLIENT_BATCHES,
  )
  const orders: number[][] = []
  for (let epoch = 0; epoch < 2; epoch++) {
    const held: LeasedBatch[] = []
    const order: number[] = []
    for (let step = 0; step < stream.sequence.batchesPerEpoch; step++) {
      held.push(await stream.read(epoch, step))
      order.push(...held.at(-1)!.slots.map((slot) => slot.sample))
      if (held.length > CLIENT_BATCHES - 1) stream.release(held.shift()!)
    }
    for (const batch of held) stream.release(batch)
    orders.push(order)
  }
  return orders
}

async function countRequests(context: TestContext, setting: Setting): Promise<number> {
  const { engine, requests } = openFeed(context, setting)
  const orders = await readEpochs(engine, setting)
  assert.deepEqual(requests, simulate(orders, setting, engine.budget.prefetchBytes), JSON.stringify(setting))
  return requests.length
}

const alike = () => SAMPLE_BYTES
const unlike = (sample: number) => SAMPLE_BYTES * (1 + ((sample * 7919) % 9))

for (const { name, lengthOf } of [
  { name: 'samples alike', lengthOf: alike },
  { name: 'samples of unlike sizes', lengthOf: unlike },
])
  test(`--conformance asks for what a simulation of seed 000 asks for, with ${name}`, async (context) => {
    for (const k of [7, 64])
      for (const nodeCount of [1, 4])
        for (const batchSize of [1, 64]) {
          let before = Number.POSITIVE_INFINITY
          for (const memoryBytes of [150_000, 250_000, 800_000]) {
            const setting = { sampleCount: 700, k, nodeCount, batchSize, memoryBytes, lengthOf }
            const count = await countRequests(context, setting)
            assert.ok(count <= before, `${count} requests in ${memoryBytes} bytes, ${before} in fewer`)
            before = count
          }
        }
  })

test('6,144 samples in batches of 64 take 96 requests of 64 in an epoch', async (context) => {
  for (const memoryBytes of [2 ** 18, 2 ** 23]) {
    const setting = { sampleCount: 6144, k: 64, nodeCount: 1, batchSize: 64, memoryBytes, lengthOf: alike }
    assert.equal(await countRequests(context, setting), 2 * 96)
  }
})
