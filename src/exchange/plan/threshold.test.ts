import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ringCallCost } from './cost-model.js'
import { planThreshold } from './threshold.js'

const GIGABIT = 125e6
const plan = (
  change: {
    ranks?: number
    alphaSeconds?: number
    bandwidth?: number
    backwardSeconds?: number
    wireBytes?: number
  } = {},
) => {
  const ranks = change.ranks ?? 8
  const link = {
    alphaSeconds: change.alphaSeconds ?? 500e-6,
    bandwidthBytesPerSecond: change.bandwidth ?? 10 * GIGABIT,
  }
  return planThreshold({
    ranks,
    layers: 152,
    backwardSeconds: change.backwardSeconds ?? 0.4,
    wireBytes: change.wireBytes ?? 120e6,
    cost: ringCallCost(link, ranks),
  })
}

for (const { name, change, rule, layers } of [
  { name: 'asks nothing of a single rank', change: { ranks: 1 }, rule: 'alone', layers: 1 },
  {
    name: 'sends every layer when a call costs nothing',
    change: { alphaSeconds: 0 },
    rule: 'one layer',
    layers: 1,
  },
  { name: 'keeps calls from queueing while the link has room', change: {}, rule: 'stable', layers: 4.6 },
  {
    name: 'takes the square root when the link is the bottleneck',
    change: { bandwidth: GIGABIT },
    rule: 'saturated',
    layers: 152 * Math.sqrt(0.007 / 0.4),
  },
  {
    name: 'sends everything at once when a call outlasts backward',
    change: { alphaSeconds: 50e-3 },
    rule: 'one bucket',
    layers: 152,
  },
]) {
  test(`planThreshold ${name}`, () => {
    const threshold = plan(change)
    assert.equal(threshold.rule, rule)
    assert.ok(Math.abs(threshold.layers - layers) < 0.1, `${threshold.layers} layers`)
    assert.ok(Math.abs(threshold.bytes - (120e6 * threshold.layers) / 152) < 1)
    assert.ok(threshold.explanation.length > 40)
  })
}

test('planThreshold is the four symbols of the patent on a link of infinite bandwidth', () => {
  const threshold = plan({ bandwidth: Number.POSITIVE_INFINITY })
  assert.ok(Math.abs(threshold.layers - (2 * 7 * 500e-6 * 152) / 0.4) < 1e-9)
})

test('planThreshold never falls when latency or the number of ranks grows at equal bytes', () => {
  let last = 0
  for (const alphaSeconds of [0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]) {
    const { layers } = plan({ alphaSeconds })
    assert.ok(layers >= last, `${layers} after ${last}`)
    last = layers
  }
  last = 0
  for (const ranks of [2, 3, 4, 8, 16, 64, 256]) {
    // c·S is held fixed: the bandwidth is chosen so that the bytes always take 0.2 s.
    const bandwidth = (2 * (ranks - 1) * 120e6) / (ranks * 0.2)
    const { layers } = plan({ ranks, bandwidth })
    assert.ok(layers >= last, `${layers} after ${last}`)
    last = layers
  }
})

test('the explanation gives times in milliseconds', () => {
  const { explanation } = plan({ bandwidth: GIGABIT, alphaSeconds: 5e-6 })
  assert.match(explanation, /the bytes alone take 1680 ms, backward only 400 ms/)
  assert.match(explanation, /balances 0\.070 ms per call/)
})
