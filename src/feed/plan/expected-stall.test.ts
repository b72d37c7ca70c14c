import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planStall, type StallOptions } from './expected-stall.js'

/** 64 samples of 10,000 bytes in 10 ms, from a node that sends 200,000 bytes per ms after 1 ms: a third of its rate. */
const base: StallOptions = {
  stepMs: 10,
  batchSize: 64,
  ranks: 1,
  nodeCount: 1,
  k: 128,
  lowWater: 128,
  sampleBytes: 10_000,
  carryShare: 0,
  cost: { fixedMs: 1, bytesPerMs: 200_000 },
}
/** Time for one answer: t0 + ks/B. */
const ANSWER_MS = 7.4

for (const { name, change, stallShare, cause } of [
  {
    name: 'is 0 while the nodes send faster than training reads',
    change: {},
    stallShare: 0,
    cause: 'none',
  },
  {
    name: 'half of the time is waited for when training takes twice what the nodes send',
    change: { stepMs: 1.6 },
    stallShare: 0.5,
    cause: 'rate',
  },
  {
    name: 'is 0 if everything comes from Cache_next',
    change: { stepMs: 1.6, carryShare: 1 },
    stallShare: 0,
    cause: 'none',
  },
  {
    name: 'four nodes send four times as much',
    change: { stepMs: 1.6, nodeCount: 4 },
    stallShare: 0,
    cause: 'none',
  },
  {
    name: 'two ranks take twice as much',
    change: { stepMs: 3.2, ranks: 2 },
    stallShare: 0.5,
    cause: 'rate',
  },
  {
    name: 'what Cache_next gives comes first, and the rest is waited for all the same',
    change: { stepMs: 1.6, carryShare: 0.75 },
    stallShare: 0.25 / 1.25, // a quarter of the steps take twice as long
    cause: 'rate',
  },
  {
    name: 'nothing is waited for when Cache_next gives everything',
    change: { stepMs: 1.6, carryShare: 1 },
    stallShare: 0,
    cause: 'none',
  },
  {
    name: 'small requests to a far node cost its rate, though two are on their way',
    change: { k: 16, cost: { fixedMs: 79.2, bytesPerMs: 200_000 } }, // 2 · 160,000 bytes in 80 ms
    stallShare: 150 / 160,
    cause: 'rate',
  },
  {
    name: 'without a low-water mark each answer is waited for, once in k / b steps',
    change: { lowWater: 0 },
    stallShare: ANSWER_MS / 2 / (10 + ANSWER_MS / 2),
    cause: 'latency',
  },
  {
    name: 'a low-water mark below one batch has no effect',
    change: { lowWater: 63 },
    stallShare: ANSWER_MS / 2 / (10 + ANSWER_MS / 2),
    cause: 'latency',
  },
  {
    name: 'a low-water mark of one batch hides an answer that takes less than a step',
    change: { lowWater: 64 },
    stallShare: 0,
    cause: 'none',
  },
] as const) {
  test(`of the expected stall: ${name}`, () => {
    const stall = planStall({ ...base, ...change })
    assert.ok(Math.abs(stall.stallShare - stallShare) < 1e-9, `${stall.stallShare}`)
    assert.equal(stall.cause, cause)
  })
}

test('by the miss trigger alone 1 − (1 − 1/k)^b of the batches wait for an answer', () => {
  const { missTriggerStallShare, demandBytesPerSecond, supplyBytesPerSecond } = planStall(base)
  const waited = (1 - (127 / 128) ** 64) * ANSWER_MS
  assert.ok(Math.abs(missTriggerStallShare - waited / (10 + waited)) < 1e-9)
  assert.equal(demandBytesPerSecond, 64e6)
  assert.equal(supplyBytesPerSecond, 200e6)
})
