import assert from 'node:assert/strict'
import { test } from 'node:test'
import { traceConformance } from '../../testing/feed-conformance.js'

const SAMPLES = 12_000

/** Totals of the epochs after the first, if sizes are equal and samples are requested on a miss only. */
function countLaterEpochs(options: {
  nodeCount: number
  k: number
  arenaSamples: number
  prefixCount: number
  world?: number
}) {
  const { arenaSamples, world = 1, ...rest } = options
  const epochs = 3
  const trace = traceConformance({
    ...rest,
    world,
    sampleCount: SAMPLES,
    seed: 1,
    epochs,
    arenaBytes: arenaSamples,
    lengthOf: () => 1,
    threshold: 0.9,
  })
  const perEpoch = SAMPLES / world
  let accesses = 0
  const counts = { accesses: 0, hit: 0, kept: 0, miss: 0, requests: 0, reads: 0, keptAtStart: 0 }
  for (const line of trace) {
    const kind = line.slice(0, line.indexOf(' '))
    const isLater = accesses >= perEpoch
    if (kind === 'request' && isLater) {
      counts.requests++
      counts.reads += line.split(' ').length - 2
    }
    if (kind !== 'hit' && kind !== 'kept' && kind !== 'miss') continue
    accesses++
    if (accesses <= perEpoch) continue
    counts.accesses++
    counts[kind]++
    const place = counts.accesses - 1
    if (kind === 'kept' && place < perEpoch && counts.keptAtStart === place) counts.keptAtStart++
  }
  return counts
}
const hitRate = (counts: { accesses: number; miss: number }) => 1 - counts.miss / counts.accesses
const within = (actual: number, law: number, tolerance: number) =>
  assert.ok(Math.abs(actual - law) <= tolerance, `${actual}, not ${law} ± ${tolerance}`)

for (const { nodeCount, k } of [
  { nodeCount: 1, k: 32 },
  { nodeCount: 4, k: 8 },
  { nodeCount: 16, k: 32 },
]) {
  test(`with room for N(k−1) samples the hit rate is 1 − 1/k for N = ${nodeCount}, k = ${k}`, () => {
    const arenaSamples = nodeCount * (k - 1)
    const counts = countLaterEpochs({ nodeCount, k, arenaSamples, prefixCount: 0 })
    within(hitRate(counts), 1 - 1 / k, 0.005)
  })
}

for (const share of [0.1, 0.2, 0.3, 0.5, 0.7]) {
  test(`with ${share} of that room the hit rate is at least 1 − 1/min(k, 1 + A/N), and nothing is read twice`, () => {
    const [nodeCount, k] = [16, 32]
    const arenaSamples = Math.round(share * nodeCount * (k - 1))
    const counts = countLaterEpochs({ nodeCount, k, arenaSamples, prefixCount: 0 })
    const law = 1 - 1 / Math.min(k, 1 + arenaSamples / nodeCount)
    assert.ok(hitRate(counts) >= law - 0.01, `${hitRate(counts)} is less than ${law}`)
    assert.equal(counts.reads, counts.accesses)
  })
}

for (const share of [0.05, 0.1, 0.5, 1]) {
  test(`with Cache_next for ${share} of the samples each epoch begins with so many hits and reads the rest`, () => {
    const prefixCount = share * SAMPLES
    const counts = countLaterEpochs({ nodeCount: 4, k: 1, arenaSamples: 1, prefixCount })
    assert.equal(counts.keptAtStart, prefixCount)
    assert.equal(counts.kept, 2 * prefixCount)
    assert.equal(counts.reads, 2 * (SAMPLES - prefixCount))
  })
}

for (const { share, k } of [
  { share: 0.1, k: 32 },
  { share: 0.4, k: 32 },
]) {
  test(`both methods together hit 1 − (1 − α)/k of the time and read n − P for α = ${share}`, () => {
    const prefixCount = share * SAMPLES
    const counts = countLaterEpochs({ nodeCount: 16, k, arenaSamples: 16 * (k - 1), prefixCount })
    within(hitRate(counts), 1 - (1 - share) / k, 0.005)
    assert.equal(counts.reads, 2 * (SAMPLES - prefixCount))
  })
}

for (const { share, law } of [
  { share: 0.1, law: 0.1 },
  { share: 0.5, law: 0.25 },
]) {
  test(`one of four compute nodes that keeps ${share} of its share of an epoch hits ${law}: min(a, 1/R)`, () => {
    const world = 4
    const own = SAMPLES / world
    const prefixCount = Math.min(own, world * share * own)
    const counts = countLaterEpochs({ nodeCount: 4, k: 1, arenaSamples: 1, prefixCount, world })
    within(counts.kept / counts.accesses, law, 0.02)
  })
}
