// Compares what `dsc feed plan` says about waiting with feeds that run: samples of a folder come through nodes shaped to a
// fixed time per request (t0) and a rate (B), a trainer takes a batch every --step-ms. Mostly sleeps; a step and t0 are
// tens of ms, so that timers of 1 ms do not matter. Fails where plan and run differ by more than --within of the time.
//   npm run build && node scripts/bench/feed-stall.mjs [--json] [--only <words of a row>]
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
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
import { readOptions } from './read-options.mjs'

const { values } = readOptions(import.meta.url, {
  options: {
    json: { type: 'boolean' },
    only: { type: 'string', default: '' },
    within: { type: 'string', default: '0.05' },
  },
})
const MIB = 2 ** 20
const BATCH = 32
const SAMPLES = 2400
const SAMPLE_BYTES = 10_000

/** One thing is changed at a time. */
const BASE = { stepMs: 20, ranks: 1, nodes: 1, k: 64, memory: 8 * MIB, fixedMs: 10, rate: 50_000 }
const ROWS = [
  { name: 'nodes faster than training' },
  { name: 'half the rate', rate: 8_000 },
  { name: 'a fifth of the rate', rate: 3_200 },
  { name: 'k = 32, far node', k: 32, fixedMs: 60 },
  { name: 'k = 64, far node', fixedMs: 100 },
  { name: 'k = 128, far node', k: 128, fixedMs: 100 },
  { name: 'k = 16, less than a batch', k: 16, fixedMs: 30 },
  { name: 'k = 8', k: 8, fixedMs: 20 },
  { name: 'two nodes, half the rate each', nodes: 2, rate: 8_000 },
  { name: 'four far nodes', nodes: 4, fixedMs: 80 },
  { name: 'two ranks', ranks: 2, rate: 16_000 },
  { name: 'two ranks, far node', ranks: 2, fixedMs: 60 },
  { name: 'half of it kept', memory: 16 * MIB, rate: 6_000 },
  { name: 'nearly all kept', memory: 24 * MIB, rate: 3_000 },
  { name: 'short memory', memory: 2 * MIB, rate: 12_000 },
  { name: 'k by bytes', k: 'auto', memory: 16 * MIB, rate: 12_000 },
]

const root = mkdtempSync(join(tmpdir(), 'dsc-feed-stall-'))
process.on('exit', () => rmSync(root, { recursive: true, force: true }))
mkdirSync(join(root, 'data'))
for (let id = 0; id < SAMPLES; id++)
  writeFileSync(join(root, 'data', `${id}`.padStart(6, '0')), Buffer.alloc(SAMPLE_BYTES, id))
const folder = await indexSamples(join(root, 'data'), { cacheFolder: undefined })

const results = []
for (const { name, ...change } of ROWS.filter((row) => row.name.includes(values.only))) {
  const row = { ...BASE, ...change }
  const { stall, byLaw, rehearsedMs } = await plan(row)
  const measured = await run(row)
  results.push({
    name,
    ...row,
    plannedShare: stall.stallShare,
    cause: stall.cause,
    byLaw: byLaw.stallShare,
    rehearsedMs,
    measuredShare: measured,
  })
  if (!values.json)
    process.stdout.write(
      `${name.padEnd(32)} planned ${percent(stall.stallShare)} (${stall.cause}), measured ${percent(measured)}; by law ${percent(byLaw.stallShare)}; ${rehearsedMs.toFixed()} ms\n`,
    )
}
if (values.json) process.stdout.write(`${JSON.stringify(results, undefined, 1)}\n`)

function percent(share) {
  return `${(100 * share).toFixed(1).padStart(5)} %`
}

/** As `dsc feed plan` does it. */
async function plan({ stepMs, ranks, nodes, k, memory, fixedMs, rate }) {
  const { table } = folder
  const options = {
    sampleCount: table.count,
    totalBytes: table.totalBytes,
    ...planSampleRoom(table),
    memoryBytes: memory,
    nodeCount: nodes,
    batchSize: BATCH,
    ranks,
    k,
    cost: { fixedMs, bytesPerMs: rate },
    stepMs,
  }
  const budget = planBudgetOptions(options)
  const begunMs = performance.now()
  const stall = await rehearseStall(table, budget, options)
  const rehearsedMs = performance.now() - begunMs
  const byLaw = planExpectation({ ...options, rehearsal: await rehearseFeed(table, budget) }).stall
  return { stall, byLaw, rehearsedMs }
}

/** The share of an epoch after the first in which the trainers wait. */
async function run({ stepMs, ranks, nodes, k, memory, fixedMs, rate }) {
  const local = folderSupply(folder)
  const supply = {
    ...local,
    makeSource: (parts) => shapedSource(local.makeSource(parts), { nodes, fixedMs, bytesPerMs: rate }),
  }
  const { requestBytes, ranks: clients } = planBudgetOptions({
    sampleCount: folder.table.count,
    totalBytes: folder.table.totalBytes,
    ...planSampleRoom(folder.table),
    memoryBytes: memory,
    nodeCount: nodes,
    batchSize: BATCH,
    ranks,
    k,
    cost: { fixedMs, bytesPerMs: rate },
  })
  const engine = openFeedEngine(supply, { memoryBytes: memory, k, requestBytes, threads: 1 })
  try {
    const shares = await Promise.all(
      clients.map(({ leases }, rank) =>
        train(
          engine.openStream({ batchSize: BATCH, world: ranks, rank, replicate: 1, last: 'drop' }, leases),
          stepMs,
        ),
      ),
    )
    return shares.reduce((sum, share) => sum + share, 0) / shares.length
  } finally {
    await engine.close()
  }
}

async function train(stream, stepMs) {
  await stream.start(0, 0)
  const { stepsPerEpoch } = stream.sequence
  let waitedMs = 0
  let begunMs = 0
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

const worst = Math.max(
  ...results.map(({ plannedShare, measuredShare }) => Math.abs(plannedShare - measuredShare)),
)
process.stderr.write(`plan and run differ by ${percent(worst).trim()} of the time at most\n`)
process.exitCode = worst <= Number(values.within) ? 0 : 1
