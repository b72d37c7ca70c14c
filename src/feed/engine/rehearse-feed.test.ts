import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { indexSamples, type SampleFolder } from '../../samples/index-samples.js'
import { makeTestFolder, writeSamples } from '../../testing/sample-folder.js'
import { planSampleRoom } from '../arena/arena-runs.js'
import type { ArenaBudgetOptions } from '../plan/arena-budget.js'
import { folderSupply } from '../sources/folder-supply.js'
import type { BatchStream } from '../stream/batch-stream.js'
import type { FeedEngine } from './feed-engine.js'
import { openFeedEngine } from './open-feed-engine.js'
import { rehearseFeed } from './rehearse-feed.js'

const COUNT = 1030
const MIB = 2 ** 20
let folders: Readonly<Record<'plain' | 'tar' | 'large', SampleFolder>>

before(async (context) => {
  const root = makeTestFolder(context as never)
  const index = (name: string) => indexSamples(join(root, name), { cacheFolder: join(root, 'cache') })
  writeSamples(join(root, 'plain'), COUNT, (id) => 1500 + ((id * 37) % 4000))
  writeSamples(join(root, 'large'), 40, (id) => 900_000 + ((id * 3701) % 200_000))
  mkdirSync(join(root, 'tar'))
  execFileSync('tar', ['-cf', join(root, 'tar', '0.tar'), '-C', join(root, 'plain'), '.', '--sort=name'])
  folders = { plain: await index('plain'), tar: await index('tar'), large: await index('large') }
})

/**
 * Returns requests and kept samples of two epochs of a feed that reads a folder, running as far as it can by itself.
 */
async function runFeed(folder: SampleFolder, { memoryBytes, k, requestBytes, ranks }: ArenaBudgetOptions) {
  const engine = openFeedEngine(folderSupply(folder), { memoryBytes, k, requestBytes, threads: 1, seed: 0 })
  try {
    const streams = ranks.map(({ batchSize, leases }, rank) =>
      engine.openStream({ batchSize, world: ranks.length, rank, replicate: 1, last: 'drop' }, leases),
    )
    for (const stream of streams) await stream.start(0, 0)
    const first = await runEpoch(engine, streams, 0)
    const both = await runEpoch(engine, streams, 1)
    return { first, later: { requests: both.requests - first.requests, kept: both.kept - first.kept } }
  } finally {
    await engine.close()
  }
}

async function runEpoch(engine: FeedEngine, streams: readonly BatchStream[], epoch: number) {
  const sum = (of: 'requests' | 'kept') => streams.reduce((total, { counts }) => total + counts[of], 0)
  for (let step = 0; step < streams[0]!.sequence.stepsPerEpoch; step++) {
    const batches = await Promise.all(streams.map((stream) => stream.read(epoch, step)))
    for (const [rank, stream] of streams.entries()) stream.release(batches[rank]!)
    do
      await nextTurn() // lets storage and the copies to Cache_next keep up
    while (engine.source.meters[0]!.requests < sum('requests') || streams.some((each) => each.isGivingBack))
  }
  return { requests: sum('requests'), kept: sum('kept') }
}

interface Run {
  readonly data: keyof typeof folders
  readonly k: number | 'auto'
  readonly memoryBytes: number
  readonly ranks: number
  readonly batchSize: number
}

function testRehearsal({ data, k, memoryBytes, ranks, batchSize }: Run): void {
  const title = `${data}, k = ${k}, ${memoryBytes / MIB} MiB, ${ranks} × ${batchSize}`
  test(`a rehearsal makes the requests of the run: ${title}`, async () => {
    const { table } = folders[data]
    const plan: ArenaBudgetOptions = {
      ...planSampleRoom(table),
      memoryBytes,
      sampleCount: table.count,
      nodeCount: 1,
      ranks: Array.from({ length: ranks }, () => ({ batchSize, leases: 3 })),
      k,
      requestBytes: 256 * 1024,
    }
    const rehearsed = await rehearseFeed(table, plan)
    assert.ok(rehearsed.first.requests > 0)
    assert.deepEqual(rehearsed, await runFeed(folders[data], plan))
  })
}

for (const data of ['plain', 'tar', 'large'] as const)
  for (const k of ['auto', 1, 8, 64] as const)
    for (const memoryBytes of data === 'large' ? [24 * MIB, 64 * MIB] : [MIB, 2 * MIB, 16 * MIB])
      for (const ranks of [1, 2])
        testRehearsal({ data, k, memoryBytes, ranks, batchSize: data === 'large' ? 4 : 32 })

// The last 70 samples fill no batch, and are more than a request.
for (const memoryBytes of [2 * MIB, 16 * MIB])
  testRehearsal({ data: 'plain', k: 50, memoryBytes, ranks: 1, batchSize: 240 })

// Lists fill while samples are copied to Cache_next, which takes the run longer.
for (const batchSize of [148, 160])
  for (const k of [50, 64]) testRehearsal({ data: 'plain', k, memoryBytes: 16 * MIB, ranks: 1, batchSize })
