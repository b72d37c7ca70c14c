import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BlockSet, planBlockBytes } from './block-set.js'

const KIB = 1024

test('what is added is there in whole blocks, and the rest is missing in runs', () => {
  const set = new BlockSet(100 * KIB + 1, 4 * KIB)
  set.add({ offset: 10 * KIB, length: 3 * KIB })
  set.add({ offset: 100 * KIB, length: 1 })
  assert.equal(set.has({ offset: 8 * KIB, length: 8 * KIB }), true)
  assert.equal(set.has({ offset: 8 * KIB, length: 8 * KIB + 1 }), false)
  assert.deepEqual(
    [...set.missing({ offset: 5 * KIB, length: 200 * KIB })],
    [
      { offset: 4 * KIB, length: 4 * KIB },
      { offset: 16 * KIB, length: 84 * KIB },
    ],
  )
  assert.equal(set.countIn({ offset: 0, length: 200 * KIB }), 8 * KIB + 1)
  assert.equal(set.countIn({ offset: 7 * KIB, length: 2 * KIB }), KIB)
})

test('blocks that two ranges share are missing once', () => {
  const set = new BlockSet(64 * KIB, 4 * KIB)
  const fetched: number[] = []
  for (const range of [
    { offset: 1, length: 5000 },
    { offset: 5001, length: 5000 },
    { offset: 0, length: 64 * KIB },
  ])
    for (const run of [...set.missing(range)]) {
      fetched.push(run.length)
      set.add(run)
    }
  assert.deepEqual(fetched, [8 * KIB, 4 * KIB, 52 * KIB])
})

test('an empty range is there, and a range behind the end has nothing to wait for', () => {
  const set = new BlockSet(10, 4 * KIB)
  assert.equal(set.has({ offset: 3, length: 0 }), true)
  assert.equal(set.has({ offset: 10, length: 5 }), true)
  assert.equal(set.has({ offset: 9, length: 1 }), false)
})

test('a set restores from its own bits, and refuses those of another size', () => {
  const set = new BlockSet(100 * KIB, 4 * KIB)
  set.add({ offset: 0, length: 50 * KIB })
  assert.equal(new BlockSet(100 * KIB, 4 * KIB, set.bits).has({ offset: 0, length: 50 * KIB }), true)
  assert.equal(new BlockSet(10 * KIB, 4 * KIB, set.bits).has({ offset: 0, length: 1 }), false)
})

test('no block is in two parts, and a source that ignores ranges sends one', () => {
  const object = { sizeBytes: 50_000_000, partBytes: 5 * 1024 * KIB, ignoresRanges: false }
  assert.equal(planBlockBytes(object), 4 * KIB)
  assert.equal(planBlockBytes({ ...object, partBytes: 5_000_001 }), 5_000_001)
  assert.equal(planBlockBytes({ ...object, partBytes: 50_000_000 }), 4 * KIB)
  assert.equal(planBlockBytes({ ...object, ignoresRanges: true }), 50_000_000)
})
