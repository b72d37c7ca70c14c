import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planColdStart } from './cold-start.js'

// Every plan adds to these numbers 300 ms for a client's start, and 336 ms for 64 MiB at 200 MB/s.
const NONE = { ms: 0, count: 0 }
/** 1,000 samples of 100,000 bytes over 100 MB/s: 1 ms each, 1 s total. */
const plain = {
  sampleCount: 1000,
  totalBytes: 1e8,
  partedCount: 0,
  globalBatch: 100,
  startMs: 50,
  cost: { fixedMs: 20, bytesPerMs: 100_000 },
  stepMs: undefined,
  supply: { kind: 'samples' },
} as const
const rows = [
  { name: 'the first batch waits for its own samples', change: {}, expected: [470, 1706, null, null] },
  { name: 'fast training waits for the link', change: { stepMs: 10 }, expected: [470, 1706, 1380, 1280] },
  {
    name: 'slow training waits for its first batch only',
    change: { stepMs: 200 },
    expected: [470, 1706, 2470, 470],
  },
  {
    name: 'what must be here first is waited for',
    change: { stepMs: 200, supply: { kind: 'copy' } },
    expected: [1706, 1706, 3706, 1706],
  },
  {
    name: 'tiny samples take what a request takes',
    change: { totalBytes: 1000, cost: { fixedMs: 64, bytesPerMs: 1e5 } },
    expected: [514, 1414, null, null],
  },
  {
    name: 'headers come first, at the pace that was measured',
    change: { stepMs: 10, supply: { kind: 'samples', headers: { count: 12_000, perMs: 12, warmUp: NONE } } },
    expected: [1470, 1706, 2380, 2280],
  },
  {
    name: 'of headers, what came in the warm-up counts with the time it took',
    change: {
      supply: { kind: 'samples', headers: { count: 12_000, perMs: 12, warmUp: { ms: 400, count: 1200 } } },
    },
    expected: [1770, 2006, null, null], // 0.4 s, and 10,800 at 12
  },
  {
    name: 'fewer headers than came in the warm-up take a part of it',
    change: {
      supply: { kind: 'samples', headers: { count: 3000, perMs: 12, warmUp: { ms: 4000, count: 6000 } } },
    },
    expected: [2470, 2706, null, null],
  },
  {
    name: 'objects in parts are asked for their checksums, 64 at a time',
    change: { partedCount: 65 },
    expected: [510, 1726, null, null],
  },
  {
    name: 'a little dataset is synced sooner',
    change: { totalBytes: 1e6, supply: { kind: 'copy' } },
    expected: [688, 688, null, null],
  },
  {
    name: 'a sample of a shard that is on its way in one piece waits for all of it',
    change: { globalBatch: 1, supply: { kind: 'samples', wholeShards: 4 } },
    expected: [621, 1706, null, null], // 2 of 4, which take 500 ms, every other time
  },
  {
    name: 'what came of such shards while headers were read is not waited for',
    change: {
      globalBatch: 100,
      supply: { kind: 'samples', wholeShards: 4, headers: { count: 3000, perMs: 7.5, warmUp: NONE } },
    },
    expected: [1470, 1706, null, null], // after 800 ms, 200 of the second 500 are left
  },
  {
    name: 'few headers take their rounds',
    change: { supply: { kind: 'samples', headers: { count: 10, perMs: 12, warmUp: NONE } } },
    expected: [670, 1706, null, null],
  },
  {
    name: 'a batch waits for the shards that its samples are in',
    change: { globalBatch: 1, stepMs: 1, supply: { kind: 'shards', shardCount: 4 } },
    expected: [620, 1706, 2348, 1348], // soon of all, which are there after 1706 ms
  },
  {
    name: 'shards that came while headers were read are here',
    change: {
      globalBatch: 1,
      supply: { kind: 'shards', headers: { count: 6000, perMs: 7.5, warmUp: NONE }, shardCount: 4 },
    },
    expected: [1220, 1706, null, null], // 3.2 of 4, in 800 ms
  },
  {
    name: 'less than a batch has no epoch',
    change: { globalBatch: 2000, stepMs: 1 },
    expected: [1370, 1706, null, null],
  },
] as const
for (const { name, change, expected } of rows)
  test(`planColdStart: ${name}`, () => {
    const { firstBatchMs, wholeMs, epochMs, waitMs } = planColdStart({ ...plain, ...change })
    const found = [firstBatchMs, wholeMs, epochMs, waitMs].map((ms) => ms && Math.round(ms))
    assert.deepEqual(found, expected)
  })
