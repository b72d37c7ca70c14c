import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseLevels } from './choose-levels.js'
import { findThinLink } from './thin-link.js'

const gradients = Array.from({ length: 20 }, (_, layer) => ({
  name: `layer ${layer}`,
  elements: 5_000_000,
  layer,
  readySeconds: 0.01 * (layer + 1),
}))
const job = (megabits: number, ranks = 4, alphaSeconds = 1e-3) => ({
  gradients,
  backwardSeconds: 0.2,
  ranks,
  link: { alphaSeconds, bandwidthBytesPerSecond: (megabits * 1e6) / 8 },
  gradientBytes: 4,
})

for (const { name, input, isThin } of [
  { name: 'calls 10 Gb/s wide enough', input: job(10_000), isThin: false },
  { name: 'calls 500 Mb/s wide enough for one bit per value', input: job(500), isThin: false },
  { name: 'calls 100 Mb/s too thin', input: job(100), isThin: true },
  { name: 'calls a fast link of 200 ms latency too thin', input: job(10_000, 4, 0.2), isThin: true },
  { name: 'has nothing to say of one rank', input: job(1, 1), isThin: false },
]) {
  test(`findThinLink ${name}`, () => {
    assert.equal(findThinLink(input) !== undefined, isThin)
  })
}

test('findThinLink predicts what one bit, halves and local steps come to', () => {
  const thin = findThinLink(job(100))!
  // 100 million values; a ring of 4 carries each byte 1.5 times; 12.5 MB/s.
  const seconds = (bytes: number) => (1.5 * bytes) / 12.5e6
  assert.ok(Math.abs(thin.halfStepMs / 1000 - seconds(2e8)) < 0.5, `${thin.halfStepMs}`)
  assert.ok(thin.oneBitStepMs / 1000 > seconds(1.25e7) && thin.oneBitStepMs / 1000 < seconds(1.25e7) + 0.3)
  assert.ok(Math.abs(thin.bestSyncShare - 300 / thin.oneBitStepMs) < 1e-9)
  const outer = seconds(4e8) + 6e-3
  assert.equal(thin.localSteps, Math.ceil((0.9 * outer) / (0.1 * 0.3)))
  assert.ok(Math.abs(thin.localStepMs - 1000 * (0.3 + outer / thin.localSteps)) < 1e-6)
  assert.ok(thin.localStepMs < thin.oneBitStepMs)
  assert.match(thin.explanation, /more than the 500 .* dsc itself stays synchronous\.$/)
})

for (const { name, input, perHost, levels } of [
  { name: 'one level with one rank per host', input: job(1000), perHost: 1, levels: 1 },
  { name: 'two levels on a slow network', input: job(1000), perHost: 2, levels: 2 },
  { name: 'one level on one host', input: job(1000), perHost: 4, levels: 1 },
  { name: 'one level where the network costs nothing', input: job(1e9, 4, 0), perHost: 2, levels: 1 },
]) {
  test(`chooseLevels takes ${name}`, () => {
    const choice = chooseLevels(input, perHost)
    assert.equal(choice.levels, levels)
    assert.equal(choice.networkRanks, levels === 2 ? input.ranks / perHost : input.ranks)
  })
}
