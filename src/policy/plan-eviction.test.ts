import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DISK, exampleCopy, NOW_MS } from '../testing/example-copies.js'
import { type EvictionInput, isAbandoned, planEviction, planToFree } from './plan-eviction.js'

const old = exampleCopy('old', { lastUsedAtMs: NOW_MS - 9000 })
const recent = exampleCopy('recent', { lastUsedAtMs: NOW_MS - 1000 })
const leased = exampleCopy('leased', { referenceCount: 1, lastUsedAtMs: 0 })
const locked = exampleCopy('locked', { lock: { by: 'ops', reason: 'keep', atMs: 0 }, lastUsedAtMs: 0 })
const adopted = exampleCopy('adopted', { source: null, lastUsedAtMs: 0 })
const staging = exampleCopy('staging', {
  state: 'staging',
  isBeingStaged: true,
  writtenBytes: 10,
  lastUsedAtMs: 0,
})
const abandoned = exampleCopy('abandoned', { state: 'staging', writtenBytes: 10, lastUsedAtMs: NOW_MS })
const replaced = exampleCopy('recent', {
  copyId: 'replaced',
  version: 'v0',
  readyAtMs: 1,
  lastUsedAtMs: NOW_MS,
})
const big = exampleCopy('big', { chargedBytes: 500, lastUsedAtMs: NOW_MS - 10_000 })

const rows: readonly {
  name: string
  input: Partial<EvictionInput> & Pick<EvictionInput, 'copies'>
  victims: readonly string[]
  missing?: Record<string, number>
}[] = [
  { name: 'deletes nothing when everything fits', input: { copies: [old] }, victims: [] },
  {
    name: 'starts with the least recently used',
    input: { copies: [recent, old], policy: { maxDatasets: 2 } },
    victims: ['id-old'],
  },
  {
    name: 'takes an abandoned staging before anything ready',
    input: { copies: [recent, old, abandoned], policy: { maxDatasets: 3 } },
    victims: ['id-abandoned'],
  },
  {
    name: 'takes a replaced version before an older dataset',
    input: { copies: [recent, replaced, old], policy: { maxDatasets: 3 } },
    victims: ['replaced'],
  },
  {
    name: 'does not take a stripe for replaced by a newer whole copy of its version',
    input: {
      copies: [recent, { ...recent, copyId: 'stripe', readyAtMs: 1, lastUsedAtMs: NOW_MS }, old],
      policy: { maxDatasets: 3 },
    },
    victims: ['id-old'],
  },
  {
    name: 'never deletes what is leased, locked, adopted or being staged, and then deletes nothing at all',
    input: { copies: [leased, locked, adopted, staging, old], policy: { maxDatasets: 3 } },
    victims: [],
    missing: { maxDatasets: 2 },
  },
  {
    name: 'breaks ties by name',
    input: {
      copies: [exampleCopy('b'), exampleCopy('a')].map((copy) => ({ ...copy, lastUsedAtMs: 5 })),
      policy: { maxDatasets: 2 },
    },
    victims: ['id-a'],
  },
  {
    name: 'counts bytes against the percentage of the disk',
    input: {
      copies: [old, recent],
      policy: { maxPercent: 25 },
      request: { datasets: 1, bytes: 150, inodes: 1 },
    },
    victims: ['id-old'],
  },
  {
    name: 'frees real disk space for minFree, and what others have been promised stays theirs',
    input: {
      copies: [old, recent, staging],
      policy: { minFreeBytes: 100 },
      disk: { ...DISK, freeBytes: 300 },
      request: { datasets: 1, bytes: 200, inodes: 1 },
    },
    victims: ['id-old'],
  },
  {
    name: 'passes over a copy that would not help',
    input: {
      copies: [exampleCopy('empty', { chargedBytes: 0, lastUsedAtMs: 0 }), old],
      policy: { maxPercent: 10 },
      request: { datasets: 1, bytes: 100, inodes: 1 },
    },
    victims: ['id-old'],
  },
  {
    name: 'does not count the copy that the request is for',
    input: { copies: [abandoned, old], policy: { maxDatasets: 2 }, requestCopyId: 'id-abandoned' },
    victims: [],
  },
  {
    name: 'frees inodes, unless the file system does not count them',
    input: {
      copies: [old],
      disk: { ...DISK, inodesFree: 5 },
      request: { datasets: 1, bytes: 1, inodes: 10 },
    },
    victims: ['id-old'],
  },
  {
    name: 'ignores inodes when their total is 0',
    input: {
      copies: [old],
      disk: { ...DISK, inodesTotal: 0, inodesFree: 0 },
      request: { datasets: 1, bytes: 1, inodes: 10 },
    },
    victims: [],
  },
  {
    name: 'deletes nothing for a request larger than the disk',
    input: {
      copies: [old, big],
      disk: { ...DISK, freeBytes: 300 },
      request: { datasets: 1, bytes: 2000, inodes: 1 },
    },
    victims: [],
    missing: { minFree: 1100 },
  },
  {
    name: 'deletes what it can when part is welcome',
    input: { copies: [old, leased], policy: { maxDatasets: 0 }, accept: 'part' },
    victims: ['id-old'],
    missing: { maxDatasets: 2 },
  },
]

for (const { name, input, victims, missing = {} } of rows) {
  test(`planEviction ${name}`, () => {
    const plan = planEviction({
      policy: {},
      disk: DISK,
      request: { datasets: 1, bytes: 100, inodes: 1 },
      ...input,
    })
    assert.deepEqual(
      plan.victims.map(({ copy }) => copy.copyId),
      victims,
    )
    assert.deepEqual(
      Object.fromEntries(plan.shortfalls.map((shortfall) => [shortfall.limit, shortfall.missing])),
      missing,
    )
  })
}

test('planEviction says what it could free at most', () => {
  const plan = planEviction({
    policy: { maxDatasets: 1 },
    disk: DISK,
    copies: [old, recent, leased],
    request: { datasets: 1, bytes: 100, inodes: 1 },
  })
  assert.deepEqual([plan.evictableCopies, plan.evictableBytes, plan.victims.length], [2, 200, 0])
})

const left = exampleCopy('left', { state: 'staging', chargedBytes: 500, writtenBytes: 100, lastUsedAtMs: 0 })

for (const { name, copies, bytes, victims, freedBytes, evictableBytes } of [
  {
    name: 'frees what is asked beside a staging that was left and that a task still waits for',
    copies: [{ ...left, referenceCount: 1 }, old],
    ...{ bytes: 100, victims: ['id-old'], freedBytes: 100, evictableBytes: 100 },
  },
  {
    name: 'counts of a staging that was left what it has written',
    copies: [left, old],
    ...{ bytes: 150, victims: ['id-left', 'id-old'], freedBytes: 200, evictableBytes: 200 },
  },
  {
    name: 'says what can be freed at most where that is not enough',
    copies: [left, leased],
    ...{ bytes: 101, victims: [], freedBytes: 0, evictableBytes: 100 },
  },
]) {
  test(`planToFree ${name}`, () => {
    const plan = planToFree(copies, bytes)
    assert.deepEqual(
      plan.victims.map(({ copy }) => copy.copyId),
      victims,
    )
    assert.deepEqual([plan.freedBytes, plan.evictableBytes], [freedBytes, evictableBytes])
    assert.equal(plan.shortfalls.length === 0, victims.length > 0)
  })
}

for (const { name, copy, is } of [
  { name: 'a staging without a stager', copy: abandoned, is: true },
  { name: 'a reservation without a stager', copy: { ...abandoned, state: 'reserved' }, is: true },
  { name: 'a staging that a task waits for', copy: { ...abandoned, referenceCount: 1 }, is: true },
  { name: 'a staging with a stager', copy: staging, is: false },
  { name: 'a locked staging', copy: { ...abandoned, lock: locked.lock }, is: false },
  { name: 'a ready copy', copy: old, is: false },
] as const)
  test(`${name} is ${is ? '' : 'not '}abandoned`, () => assert.equal(isAbandoned(copy), is))
