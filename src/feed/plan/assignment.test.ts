import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planItemPositions, planShares } from './assignment.js'
import { planOrder } from './order.js'
import { type LastBatchRule, planRankSequence } from './rank-sequence.js'

for (const { name, holders, shares } of [
  {
    name: 'leaves a balanced batch where it lies',
    holders: [0, 1, 1, 0],
    shares: [
      [0, 3],
      [1, 2],
    ],
  },
  {
    name: 'moves only what is too much',
    holders: [1, 1, 1, 0],
    shares: [
      [2, 3],
      [0, 1],
    ],
  },
  {
    name: 'fills a machine that holds nothing',
    holders: [1, 1, 1, 1],
    shares: [
      [2, 3],
      [0, 1],
    ],
  },
]) {
  test(`dealing out a batch ${name}`, () => assert.deepEqual(planShares(holders, 2, 2), shares))
}

/** Gathers the positions of each global batch from all ranks, and the share of samples that cross the network. */
function gather(
  sampleCount: number,
  globalBatch: number,
  world: number,
  nodeCount: number,
  last: LastBatchRule,
) {
  const order = planOrder({ sampleCount, seed: 3, epoch: 1, kind: 'shuffle' })
  const holderOf = (sample: number) => sample % nodeCount
  const steps: number[][] = []
  let crossing = 0
  let total = 0
  for (let rank = 0; rank < world; rank++) {
    const batchSize = globalBatch / world
    const sequence = planRankSequence({ sampleCount, batchSize, world, rank, replicate: 1, last })
    const positionOf = planItemPositions({
      sequence,
      rule: 'local',
      placed: { layout: 'striped', nodeCount },
    })
    const machine = Math.floor((rank * nodeCount) / world)
    for (let item = 0; item < sequence.itemsPerEpoch; item++) {
      const position = positionOf(order, item)
      const step = Math.floor(item / batchSize)
      steps[step] ??= []
      steps[step]!.push(position)
      total++
      if (holderOf(order.sampleAt(position % sampleCount)) !== machine) crossing++
    }
  }
  return { steps: steps.map((positions) => positions.toSorted((a, b) => a - b)), crossing: crossing / total }
}

for (const last of ['drop', 'pad', 'uneven'] as const) {
  test(`with assign 'local' every global batch has the same positions, only dealt out otherwise (last '${last}')`, () => {
    for (const { world, nodeCount } of [
      { world: 4, nodeCount: 4 },
      { world: 8, nodeCount: 4 },
      { world: 16, nodeCount: 2 },
    ]) {
      const { steps } = gather(1003, 64, world, nodeCount, last)
      const all = last === 'drop' ? 960 : last === 'pad' ? 1024 : 1003
      const expected = Array.from({ length: Math.ceil(all / 64) }, (_, step) =>
        Array.from({ length: Math.min(64, all - 64 * step) }, (_, i) => 64 * step + i),
      )
      assert.deepEqual(steps, expected)
    }
  })
}

for (const { machines, globalBatch } of [
  { machines: 4, globalBatch: 1024 },
  { machines: 4, globalBatch: 256 },
  { machines: 16, globalBatch: 1024 },
]) {
  test(`of ${machines} machines and batches of ${globalBatch}, √((R−1)/(2πB)) of the samples cross the network`, () => {
    const { crossing } = gather(200 * globalBatch, globalBatch, machines, machines, 'drop')
    const law = Math.sqrt((machines - 1) / (2 * Math.PI * globalBatch))
    assert.ok(Math.abs(crossing - law) < 0.1 * law, `${crossing}, not ${law}`)
  })
}

for (const { name, world, layout } of [
  { name: 'on nodes that all hold everything', world: 4, layout: 'full' as const },
  {
    name: 'for ranks that do not divide among the nodes',
    world: 6,
    layout: 'striped' as const,
  },
]) {
  test(`assign 'local' is refused ${name}`, () => {
    const sequence = planRankSequence({
      sampleCount: 960,
      batchSize: 8,
      world,
      rank: 0,
      replicate: 1,
      last: 'drop',
    })
    assert.throws(() => planItemPositions({ sequence, rule: 'local', placed: { layout, nodeCount: 4 } }), {
      code: 'USAGE',
    })
  })
}
