import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ExpectationOptions, planExpectation } from './expectation.js'

const MIB = 2 ** 20
const BASE: ExpectationOptions = {
  sampleCount: 1000,
  totalBytes: 1000 * 1024,
  sampleBytes: 1024,
  largestBytes: 1024,
  memoryBytes: 64 * MIB,
  nodeCount: 1,
  batchSize: 1,
  ranks: 1,
  k: 4,
  cost: undefined,
  stepMs: undefined,
}

/** Sends every sample to the next node, and counts the requests of each. */
function countOneByOne(samples: number, nodes: number, k: number): number {
  const held = Array.from({ length: nodes }, () => 0)
  for (let sample = 0; sample < samples; sample++) held[sample % nodes]! += 1
  return held.reduce((sum, each) => sum + Math.ceil(each / k), 0)
}

test('requests are those of every node, each rounded up', () => {
  for (const sampleCount of [1, 7, 8, 9, 10, 11, 97, 100])
    for (const nodeCount of [1, 2, 3, 4])
      for (const k of [1, 2, 4, 5]) {
        const plan = planExpectation({ ...BASE, sampleCount, totalBytes: sampleCount * 1024, nodeCount, k })
        const expected = countOneByOne(sampleCount, nodeCount, plan.k)
        assert.equal(plan.requestsPerEpoch, expected, `${sampleCount} on ${nodeCount}, k ${k}`)
      }
})

test('samples that fill no batch of every rank are not asked for', () => {
  const plan = planExpectation({ ...BASE, batchSize: 64, ranks: 2 })
  assert.equal(plan.stepsPerEpoch, 7)
  assert.equal(plan.requestsPerEpoch, countOneByOne(7 * 64 * 2, 1, plan.k))
})

test('what memory keeps is not asked for again, and every further sample of a request is a hit', () => {
  const plan = planExpectation(BASE)
  assert.deepEqual([plan.carryShare, plan.hitRate, plan.requestsPerLaterEpoch], [1, 1, 0])
  const tight = planExpectation({ ...BASE, sampleCount: 100_000, totalBytes: 100_000 * 1024 })
  assert.ok(tight.carryShare > 0 && tight.carryShare < 1)
  assert.equal(tight.hitRate, 1 - (1 - tight.carryShare) / tight.k)
  const fetched = Math.round(100_000 * (1 - tight.carryShare))
  assert.equal(tight.requestsPerLaterEpoch, countOneByOne(fetched, 1, tight.k))
})

test('a request takes no more samples than its bytes allow, and at least one', () => {
  for (const { mib, largestMib, perRequest } of [
    { mib: 1, largestMib: 1, perRequest: 4 },
    { mib: 2, largestMib: 2, perRequest: 2 },
    { mib: 5, largestMib: 8, perRequest: 1 },
  ]) {
    const bytes = { sampleBytes: mib * MIB, largestBytes: largestMib * MIB, totalBytes: 100 * mib * MIB }
    const plan = planExpectation({ ...BASE, ...bytes, sampleCount: 100, memoryBytes: 1024 * MIB })
    assert.equal(plan.requestsPerEpoch, Math.ceil(100 / perRequest), `${mib} MiB`)
  }
})

test('the window is what all nodes may have in flight', () => {
  const plan = planExpectation({ ...BASE, nodeCount: 3 })
  assert.equal(plan.windowSamples, 3 * (plan.k + plan.lowWater))
})

test('a simulation takes the place of the laws', () => {
  const rehearsal = { first: { requests: 300, kept: 0 }, later: { requests: 120, kept: 500 } }
  const plan = planExpectation({ ...BASE, rehearsal })
  assert.deepEqual(
    [plan.isRehearsed, plan.requestsPerEpoch, plan.requestsPerLaterEpoch, plan.carryShare],
    [true, 300, 120, 0.5],
  )
  assert.equal(planExpectation(BASE).isRehearsed, false)
})

test('waiting is foreseen only where the cost of a request and the time of a step are known', () => {
  const cost = { fixedMs: 5, bytesPerMs: 1e5 }
  assert.equal(planExpectation({ ...BASE, cost }).stall, null)
  assert.equal(planExpectation({ ...BASE, stepMs: 10 }).stall, null)
  assert.equal(planExpectation({ ...BASE, cost, stepMs: 10 }).stall?.cause, 'none')
})
