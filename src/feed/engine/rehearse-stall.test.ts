import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { indexSamples, type SampleFolder } from '../../samples/index-samples.js'
import { makeTestFolder, writeSamples } from '../../testing/sample-folder.js'
import { planSampleRoom } from '../arena/arena-runs.js'
import { type ArenaBudgetOptions, planArenaBudget } from '../plan/arena-budget.js'
import { rehearseFeed } from './rehearse-feed.js'
import { rehearseStall } from './rehearse-stall.js'

const MIB = 2 ** 20
const BATCH = 32
const STEP_MS = 20
/** A step takes 16,000 bytes per ms. */
const SAMPLE_BYTES = 10_000
const COUNT = 1600

let folder: SampleFolder

before(async (context) => {
  const root = makeTestFolder(context as never)
  writeSamples(join(root, 'data'), COUNT, () => SAMPLE_BYTES)
  folder = await indexSamples(join(root, 'data'), { cacheFolder: undefined })
})

interface Row {
  readonly name: string
  readonly memory: number
  readonly k?: number
  readonly fixedMs: number
  readonly bytesPerMs: number
}

function planOf({ memory, k = 64 }: Row): ArenaBudgetOptions {
  return {
    ...planSampleRoom(folder.table),
    memoryBytes: memory,
    sampleCount: COUNT,
    nodeCount: 1,
    ranks: [{ batchSize: BATCH, leases: 3 }],
    k,
    requestBytes: 4 * MIB,
  }
}

function rehearse(row: Row) {
  return rehearseStall(folder.table, planOf(row), { stepMs: STEP_MS, cost: row })
}

const ENOUGH = 8 * MIB
const far: Row = { name: 'far', memory: ENOUGH, k: 16, fixedMs: 60, bytesPerMs: 1e6 }
const slow: Row = { name: 'slow', memory: ENOUGH, fixedMs: 5, bytesPerMs: 4000 }

// Expected from the numbers alone. Steps without reads, because all was kept, take no longer.
for (const { row, readMs, cause } of [
  { row: { ...slow, name: 'a node faster than training', bytesPerMs: 1e6 }, readMs: STEP_MS, cause: 'none' },
  { row: { ...slow, name: 'a node with a quarter of the rate' }, readMs: 80, cause: 'rate' },
  { row: { ...slow, name: 'most of the samples kept', memory: 15 * MIB }, readMs: 80, cause: 'rate' },
  // Two requests of 16 at a time bring one batch in 60 ms.
  { row: { ...far, name: 'requests too small for a far node' }, readMs: 60, cause: 'latency' },
] as const)
  test(`a rehearsal knows how long training waits: ${row.name}`, async () => {
    const { later } = await rehearseFeed(folder.table, planOf(row))
    const { lowWater, k } = planArenaBudget(planOf(row))
    // While kept samples are used up, the lists fill: these are free.
    const read = Math.max(0, COUNT - later.kept - lowWater - k)
    const waitMs = (read / COUNT) * (readMs - STEP_MS)
    const { stallShare, cause: found } = await rehearse(row)
    const expected = waitMs / (STEP_MS + waitMs)
    assert.ok(Math.abs(stallShare - expected) < 0.01, `${stallShare} instead of ${expected}`)
    assert.equal(found, cause)
  })
