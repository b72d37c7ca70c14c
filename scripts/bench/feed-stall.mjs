// What `dsc feed plan` says about waiting, beside feeds that run: samples of a folder come through nodes shaped to a fixed
// time per request (t0) and a rate (B), and a trainer takes a batch every `stepMs`. Mostly sleeps; a step and t0 are tens
// of ms, so that timers of 1 ms do not matter. Fails where plan and run differ by more than --within of the time.
// --only: words of a row
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { planSampleRoom } from '../../dist/feed/arena/arena-runs.js'
import { openFeedEngine } from '../../dist/feed/engine/open-feed-engine.js'
import { rehearseFeed } from '../../dist/feed/engine/rehearse-feed.js'
import { rehearseStall } from '../../dist/feed/engine/rehearse-stall.js'
import { planBudgetOptions, planExpectation } from '../../dist/feed/plan/expectation.js'
import { folderSupply } from '../../dist/feed/sources/folder-supply.js'
import { indexSamples } from '../../dist/samples/index-samples.js'
import { shapedSource } from '../../dist/testing/shaped-source.js'
import { makeFiles } from './harness/stores.mjs'
import { table } from './harness/tables.mjs'

const MIB = 2 ** 20
const BATCH = 32
const SAMPLE_BYTES = 10_000
/** One thing is changed at a time. */
const BASE = { stepMs: 20, ranks: 1, nodes: 1, k: 64, memory: 8 * MIB, fixedMs: 10, rate: 50_000 }
const ROWS = {
  'nodes faster than training': {},
  'half the rate': { rate: 8_000 },
  'a fifth of the rate': { rate: 3_200 },
  'k = 32, far node': { k: 32, fixedMs: 60 },
  'k = 64, far node': { fixedMs: 100 },
  'k = 128, far node': { k: 128, fixedMs: 100 },
  'k = 16, less than a batch': { k: 16, fixedMs: 30 },
  'k = 8': { k: 8, fixedMs: 20 },
  'two nodes, half the rate each': { nodes: 2, rate: 8_000 },
  'four far nodes': { nodes: 4, fixedMs: 80 },
  'two ranks': { ranks: 2, rate: 16_000 },
  'two ranks, far node': { ranks: 2, fixedMs: 60 },
  'half of it kept': { memory: 16 * MIB, rate: 6_000 },
  'nearly all kept': { memory: 24 * MIB, rate: 3_000 },
  'short memory': { memory: 2 * MIB, rate: 12_000 },
  'k by bytes': { k: 'auto', memory: 16 * MIB, rate: 12_000 },
}

export const benchmark = {
  options: { only: '', within: 0.05, samples: 2400 },
  smoke: { only: 'nodes faster', within: 1, samples: 320 },
  async run(bench) {
    const { only, within, samples } = bench.given
    const data = join(bench.folder, 'data')
    const pathOf = (id) => `${id}`.padStart(6, '0')
    makeFiles(data, { objects: samples, bytes: SAMPLE_BYTES, pathOf, fill: (block, id) => block.fill(id) })
    const folder = await indexSamples(data, { cacheFolder: undefined })
    const rows = []
    let worst = 0
    for (const [name, change] of Object.entries(ROWS).filter(([words]) => words.includes(only))) {
      const row = { ...BASE, ...change }
      const { stall, byLaw } = await plan(folder, row)
      const measured = await run(folder, row)
      worst = Math.max(worst, Math.abs(stall.stallShare - measured))
      const shares = [stall.stallShare, measured, byLaw.stallShare].map(
        (share) => `${(100 * share).toFixed(1)} %`,
      )
      rows.push([name, stall.cause, ...shares])
      bench.progress(rows.at(-1).join(', '))
    }
    const most = `Plan and run differ by ${(100 * worst).toFixed(1)} % of the time at most.`
    bench.section(
      'stalls',
      table(['feed', 'cause', 'planned', 'measured', 'by law'], rows, { texts: 2 }),
      most,
    )
    if (worst > within) throw new Error(most)
  },
}

function optionsOf(
  { table: { count, totalBytes }, table: samples },
  { ranks, nodes, k, memory, fixedMs, rate },
) {
  const sizes = {
    sampleCount: count,
    totalBytes,
    ...planSampleRoom(samples),
    memoryBytes: memory,
    nodeCount: nodes,
  }
  return { ...sizes, batchSize: BATCH, ranks, k, cost: { fixedMs, bytesPerMs: rate } }
}

/** As `dsc feed plan` does it. */
async function plan(folder, row) {
  const options = { ...optionsOf(folder, row), stepMs: row.stepMs }
  const budget = planBudgetOptions(options)
  const stall = await rehearseStall(folder.table, budget, options)
  const byLaw = planExpectation({ ...options, rehearsal: await rehearseFeed(folder.table, budget) }).stall
  return { stall, byLaw }
}

/** The share of an epoch after the first in which the trainers wait. */
async function run(folder, row) {
  const { stepMs, ranks, nodes, k, memory, fixedMs, rate } = row
  const local = folderSupply(folder)
  const shape = { nodes, fixedMs, bytesPerMs: rate }
  const supply = { ...local, makeSource: (parts) => shapedSource(local.makeSource(parts), shape) }
  const { requestBytes, ranks: clients } = planBudgetOptions(optionsOf(folder, row))
  const engine = openFeedEngine(supply, { memoryBytes: memory, k, requestBytes, threads: 1 })
  try {
    const streams = clients.map(({ leases }, rank) =>
      engine.openStream({ batchSize: BATCH, world: ranks, rank, replicate: 1, last: 'drop' }, leases),
    )
    const shares = await Promise.all(streams.map((stream) => train(stream, stepMs)))
    return shares.reduce((sum, share) => sum + share, 0) / shares.length
  } finally {
    await engine.close()
  }
}

async function train(stream, stepMs) {
  await stream.start(0, 0)
  const { stepsPerEpoch } = stream.sequence
  let [waitedMs, begunMs] = [0, 0]
  for (let at = 0; at < 2 * stepsPerEpoch; at++) {
    const askedMs = performance.now()
    if (at === stepsPerEpoch) begunMs = askedMs
    const batch = await stream.read(Math.floor(at / stepsPerEpoch), at % stepsPerEpoch)
    if (at >= stepsPerEpoch) waitedMs += performance.now() - askedMs
    await sleep(stepMs)
    stream.release(batch)
  }
  return waitedMs / (performance.now() - begunMs)
}
