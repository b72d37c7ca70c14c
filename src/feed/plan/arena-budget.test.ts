import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planArenaBudget, planArenaBytes, planDepth, planKeep } from './arena-budget.js'

const base = {
  sampleBytes: 4096,
  largestBytes: 4096,
  sampleCount: 100_000,
  nodeCount: 1,
  ranks: [{ batchSize: 64, leases: 3 }],
  k: 'auto',
  requestBytes: 4 * 2 ** 20,
} as const

for (const { name, memoryBytes, nodeCount, k, lowWater } of [
  {
    name: 'has one request on its way while the one before is used up',
    memoryBytes: 256 * 2 ** 20,
    nodeCount: 1,
    k: 1024,
    lowWater: 1024,
  },
  { name: 'does so for every node', memoryBytes: 256 * 2 ** 20, nodeCount: 4, k: 1024, lowWater: 1024 },
  {
    name: 'keeps two batches ahead where memory is short, and shrinks k',
    memoryBytes: 3 * 2 ** 20,
    nodeCount: 1,
    k: 166,
    lowWater: 128,
  },
]) {
  test(`planArenaBudget ${name}`, () => {
    const plan = planArenaBudget({ ...base, memoryBytes, nodeCount })
    assert.deepEqual({ k: plan.k, lowWater: plan.lowWater }, { k, lowWater })
    assert.ok(plan.prefetchBytes + plan.leaseBytes <= memoryBytes)
  })
}

test('a request of tiny samples is no larger than the feed can handle at a time, unless a batch is, or it is asked for', () => {
  const tiny = { ...base, memoryBytes: 256 * 2 ** 20, sampleBytes: 64, largestBytes: 64 }
  assert.equal(planArenaBudget(tiny).k, 4096)
  assert.equal(planArenaBudget({ ...tiny, ranks: [{ batchSize: 10_000, leases: 3 }] }).k, 10_001)
  assert.equal(planArenaBudget({ ...tiny, k: 50_000 }).k, 50_000)
})

for (const { name, batchMib, memoryMib, clients, depth } of [
  { name: 'three batches where they are large', batchMib: 6, memoryMib: 1024, clients: 1, depth: 3 },
  { name: 'thirty-two where they are small', batchMib: 1 / 8, memoryMib: 1024, clients: 1, depth: 32 },
  { name: 'what eight MiB hold in between', batchMib: 1 / 2, memoryMib: 1024, clients: 2, depth: 16 },
  { name: 'no more than a share of the memory', batchMib: 1 / 4, memoryMib: 16, clients: 1, depth: 8 },
  { name: 'its part of that share beside others', batchMib: 1 / 4, memoryMib: 16, clients: 2, depth: 4 },
]) {
  test(`planDepth gives a client ${name}`, () => {
    const options = { batchBytes: batchMib * 2 ** 20, memoryBytes: memoryMib * 2 ** 20, clients }
    assert.equal(planDepth(options), depth)
  })
}

for (const { name, batchMib, memoryMib, clients, keep } of [
  { name: 'as many as are on their way', batchMib: 1 / 2, memoryMib: 1024, clients: 1, keep: 16 },
  { name: 'three large ones', batchMib: 6, memoryMib: 1024, clients: 1, keep: 3 },
  { name: 'fewer where memory is short', batchMib: 6, memoryMib: 100, clients: 1, keep: 2 },
  { name: 'its part of the memory beside others', batchMib: 6, memoryMib: 200, clients: 2, keep: 2 },
  { name: 'one, however short memory is', batchMib: 6, memoryMib: 20, clients: 1, keep: 1 },
]) {
  test(`planKeep lets a client keep ${name}`, () => {
    const room = { batchBytes: batchMib * 2 ** 20, memoryBytes: memoryMib * 2 ** 20, clients }
    assert.equal(planKeep(room), keep)
  })
}

for (const { name, freeBytes, datasetBytes, bytes } of [
  { name: 'the default where twice as much is free', freeBytes: 2 ** 29, datasetBytes: 600, bytes: 2 ** 28 },
  { name: "half of Docker's 64 MiB", freeBytes: 2 ** 26, datasetBytes: 2 ** 40, bytes: 2 ** 25 },
  { name: 'what a small dataset needs', freeBytes: 2 ** 26, datasetBytes: 600, bytes: 2 ** 23 },
  {
    name: 'four times a larger dataset',
    freeBytes: 2 ** 28,
    datasetBytes: 2 ** 24 + 1,
    bytes: 2 ** 26 + 4096,
  },
])
  test(`without a size an arena takes ${name}`, () => {
    assert.equal(planArenaBytes(freeBytes, datasetBytes), bytes)
  })

test('planArenaBudget takes more ranks than a function takes arguments', () => {
  const ranks = Array.from({ length: 1_000_000 }, () => ({ batchSize: 1, leases: 1 }))
  assert.equal(planArenaBudget({ ...base, memoryBytes: 2 ** 30, nodeCount: 1, ranks }).k >= 1, true)
})
