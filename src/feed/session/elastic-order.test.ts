import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openTestFeedClient } from '../../testing/feed-client.js'
import { makeSampleFolder, openMemoryEngine } from '../../testing/memory-samples.js'
import { makeTestFolder, sampleBytes } from '../../testing/sample-folder.js'
import type { FeedSettings } from '../engine/feed-settings.js'
import type { AssignRule } from '../plan/assignment.js'
import { shuffleSamples } from '../plan/order.js'
import type { LastBatchRule } from '../plan/rank-sequence.js'
import { SessionServer } from './session-server.js'

const COUNT = 211 // a prime: no batch, rank or node divides it
const GLOBAL_BATCH = 16
const SEED = 4
const lengthOf = (id: number) => 100 + ((id * 53) % 400)

interface Shape {
  readonly ranks: number
  readonly workers: number
  readonly nodeCount: number
  readonly last: LastBatchRule
  readonly assign?: AssignRule
}

/**
 * Returns what all workers of a job receive in one epoch: the digest of each global batch, and who got which samples.
 */
async function readJob(context: TestContext, shape: Shape, epochs: number) {
  const { ranks, workers, nodeCount, last, assign = 'fixed' } = shape
  const folder = makeTestFolder(context)
  const { table } = await makeSampleFolder(folder, COUNT, lengthOf)
  const settings: FeedSettings = { seed: SEED, memoryBytes: 400_000, threads: 1, k: 1 + ((7 * ranks) % 9) }
  const engine = openMemoryEngine(table, settings, {
    nodeCount,
    layout: 'striped',
    slownessMs: 3,
    seed: ranks + 10 * workers + 100 * nodeCount,
  })
  const server = await SessionServer.open({ engine, socketPath: join(folder, 's') })
  context.after(async () => {
    await server.close()
    await engine.close()
  })
  const batch = GLOBAL_BATCH / ranks
  const steps = Math.ceil(COUNT / GLOBAL_BATCH)
  const received: { ids: number[]; padded: boolean[]; sha256: string }[][] = []
  const batchCounts = new Map<number, number>()
  for (let epoch = 0; epoch < epochs; epoch++) {
    const parts = new Map<string, { ids: readonly number[]; data: Buffer; isPadded: readonly boolean[] }>()
    const readWorker = async (rank: number, worker: number) => {
      const lanes = Math.max(1, workers) // 0 workers: the trainer itself reads
      const hello = { rank, world: ranks, batch, last, assign, worker, workers: lanes }
      const client = await openTestFeedClient(server.socketPath, hello)
      try {
        for await (const each of client.read({ epoch, step: 0, run: `${epoch}` })) {
          assert.equal(each.step % lanes, worker)
          for (const [i, id] of each.ids.entries())
            assert.ok(each.data[i]!.equals(sampleBytes(id, lengthOf(id))))
          const key = `${each.step}/${rank}`
          assert.ok(!parts.has(key), `step ${each.step} of rank ${rank} came twice`)
          parts.set(key, { ids: each.ids, data: Buffer.concat(each.data), isPadded: each.isPadded })
          if (epoch === 0) batchCounts.set(rank, (batchCounts.get(rank) ?? 0) + 1)
        }
      } finally {
        client.close()
      }
    }
    await Promise.all(
      Array.from({ length: ranks }, (_, rank) =>
        Array.from({ length: Math.max(1, workers) }, (_, worker) => readWorker(rank, worker)),
      ).flat(),
    )
    received.push(
      Array.from({ length: steps }, (_, step) => {
        const slices = Array.from({ length: ranks }, (_, rank) => parts.get(`${step}/${rank}`)).filter(
          (part) => part !== undefined,
        )
        const hash = createHash('sha256')
        for (const slice of slices) hash.update(slice.data)
        return {
          ids: slices.flatMap((slice) => slice.ids),
          padded: slices.flatMap((slice) => slice.isPadded),
          sha256: hash.digest('hex'),
        }
      }),
    )
  }
  return { received, batchCounts }
}

const SHAPES = [1, 2, 4, 8].flatMap((ranks) =>
  [0, 1, 3].flatMap((workers) => [1, 3, 16].map((nodeCount) => ({ ranks, workers, nodeCount }))),
)

test('every global batch has the same bytes for 1, 2, 4, 8 ranks × 0, 1, 3 workers × 1, 3, 16 nodes', async (context) => {
  const reference = await readJob(context, { ranks: 1, workers: 0, nodeCount: 1, last: 'drop' }, 2)
  for (const shape of SHAPES) {
    const { received } = await readJob(context, { ...shape, last: 'drop' }, 2)
    assert.deepEqual(received, reference.received, JSON.stringify(shape))
  }
})

test("with assign 'local' the global batches are the same sets, and each rank reads from its own node", async (context) => {
  const fixed = await readJob(context, { ranks: 1, workers: 0, nodeCount: 1, last: 'drop' }, 2)
  const local = await readJob(
    context,
    { ranks: 4, workers: 3, nodeCount: 4, last: 'drop', assign: 'local' },
    2,
  )
  const sorted = (epochs: typeof fixed.received) =>
    epochs.map((steps) => steps.map(({ ids }) => ids.toSorted((a, b) => a - b)))
  assert.deepEqual(sorted(local.received), sorted(fixed.received))
  const slices = local.received.flat().flatMap(({ ids }) => ids.map((id, i) => [id % 4, Math.floor(i / 4)]))
  const own = slices.filter(([node, rank]) => node === rank).length
  assert.ok(
    own > 0.7 * slices.length,
    `${own} of ${slices.length} samples were read from the rank's own node`,
  )
})

for (const { last, delivered } of [
  { last: 'drop', delivered: 208 },
  { last: 'pad', delivered: 224 },
  { last: 'uneven', delivered: 211 },
] as const) {
  test(`with last '${last}' all ranks and workers together deliver each position once: ${delivered} of ${COUNT}`, async (context) => {
    const order = [...shuffleSamples({ sampleCount: COUNT, seed: SEED, epoch: 0 })]
    const expected = [...order, ...order].slice(0, delivered)
    for (const ranks of [1, 4, 8])
      for (const workers of [0, 3]) {
        const { received, batchCounts } = await readJob(context, { ranks, workers, nodeCount: 3, last }, 1)
        const note = `${ranks} ranks × ${workers} workers`
        assert.deepEqual(
          received[0]!.flatMap((batch) => batch.ids),
          expected,
          note,
        )
        assert.deepEqual(
          received[0]!.flatMap((batch) => batch.padded),
          expected.map((_, position) => position >= COUNT),
          note,
        )
        if (last !== 'uneven') assert.equal(new Set(batchCounts.values()).size, 1, `${note}: equal counts`)
      }
  })
}
