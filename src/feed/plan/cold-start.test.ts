import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planColdStart } from './cold-start.js'

/** 1,000 samples of 100,000 bytes over 100 MB/s: 1 ms each, 1 s in all. */
const plain = {
  sampleCount: 1000,
  totalBytes: 1e8,
  globalBatch: 100,
  startMs: 50,
  cost: { fixedMs: 20, bytesPerMs: 100_000 },
  stepMs: undefined,
  supply: { kind: 'samples' },
} as const
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
    change: { stepMs: 200, supply: { kind: 'copy' } },
    expected: [1070, 1070, 3070, 1070],
  },
  {
    name: 'tiny samples take what a request takes',
    change: { totalBytes: 1000, cost: { fixedMs: 64, bytesPerMs: 1e5 } },
    expected: [214, 1114, null, null],
  },
  {
    name: 'headers come first, at the pace that was measured',
    change: { stepMs: 10, supply: { kind: 'samples', headers: { count: 12_000, perMs: 12 } } },
    expected: [1170, 1070, 2080, 1980],
  },
  {
    name: 'few headers take their rounds',
    change: { supply: { kind: 'samples', headers: { count: 10, perMs: 12 } } },
    expected: [370, 1070, null, null],
  },
  {
    name: 'a batch waits for the shards that its samples are in',
    change: { globalBatch: 1, stepMs: 1, supply: { kind: 'shards', shardCount: 4 } },
    expected: [320, 1070, 2048, 1048], // soon of all, which is there after 1070 ms
  },
  {
    name: 'shards that came while headers were read are here',
    change: {
      globalBatch: 1,
      supply: { kind: 'shards', headers: { count: 6000, perMs: 7.5 }, shardCount: 4 },
    },
    expected: [920, 1070, null, null], // 3.2 of 4, in 800 ms
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
    const found = [firstBatchMs, wholeMs, epochMs, waitMs].map((ms) => ms && Math.round(ms))
    assert.deepEqual(found, expected)
  })
