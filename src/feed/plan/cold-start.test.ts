import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planColdStart } from './cold-start.js'

/** 1,000 samples of 100,000 bytes over 100 MB/s: 1 ms each, 1 s in all. */
const plain = {
  sampleCount: 1000,
  totalBytes: 1e8,
  globalBatch: 100,
  listMs: 50,
  cost: { fixedMs: 20, bytesPerMs: 100_000 },
  stepMs: undefined,
  isFedWhileArriving: true,
}
const rows = [
  { name: 'the first batch waits for its own samples', change: {}, expected: [170, 1070, null, null] },
  { name: 'fast training waits for the link', change: { stepMs: 10 }, expected: [170, 1070, 1080, 980] },
  {
    name: 'slow training waits for its first batch only',
    change: { stepMs: 200 },
    expected: [170, 1070, 2170, 170],
  },
  {
    name: 'what must be here first is waited for',
    change: { stepMs: 200, isFedWhileArriving: false },
    expected: [1070, 1070, 3070, 1070],
  },
  {
    name: 'tiny samples take what a request takes',
    change: { totalBytes: 1000, cost: { fixedMs: 64, bytesPerMs: 1e5 } },
    expected: [214, 1114, null, null],
  },
  {
    name: 'less than a batch has no epoch',
    change: { globalBatch: 2000, stepMs: 1 },
    expected: [1070, 1070, null, null],
  },
] as const
for (const { name, change, expected } of rows)
  test(`planColdStart: ${name}`, () => {
    const { firstBatchMs, wholeMs, epochMs, waitMs } = planColdStart({ ...plain, ...change })
    assert.deepEqual([firstBatchMs, wholeMs, epochMs, waitMs], expected)
  })
