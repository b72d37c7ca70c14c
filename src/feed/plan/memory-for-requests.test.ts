import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ArenaBudgetOptions, planArenaBudget } from './arena-budget.js'
import { findMemoryForRequests } from './memory-for-requests.js'

const MIB = 2 ** 20
const base: ArenaBudgetOptions = {
  memoryBytes: 64 * MIB,
  sampleBytes: MIB,
  largestBytes: MIB,
  sampleCount: 10_000,
  nodeCount: 1,
  ranks: [{ batchSize: 16, leases: 3 }],
  k: 'auto',
  requestBytes: 4 * MIB,
}

for (const { name, change, isShort } of [
  { name: 'samples of 1 MiB leave k = 1 in 64 MiB', change: {}, isShort: true },
  { name: 'enough memory', change: { memoryBytes: 512 * MIB }, isShort: false },
  { name: 'a k that was asked for and fits', change: { sampleBytes: 4096, k: 8 }, isShort: false },
  { name: 'small samples in little memory', change: { sampleBytes: 4096, memoryBytes: MIB }, isShort: true },
] as const) {
  test(`the memory that requests lack: ${name}`, () => {
    const options = { ...base, ...change }
    const memoryBytes = findMemoryForRequests(options)
    assert.equal(memoryBytes !== undefined, isShort)
    if (memoryBytes === undefined) return
    const wanted = planArenaBudget({ ...options, memoryBytes: 2 ** 50 }).k
    assert.equal(planArenaBudget({ ...options, memoryBytes }).k, wanted)
    assert.ok(planArenaBudget({ ...options, memoryBytes: memoryBytes / 1.25 }).k < wanted, 'not much more')
  })
}
