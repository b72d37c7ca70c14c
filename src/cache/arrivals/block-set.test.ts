import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
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

test('a set misses what a plain list of its blocks misses, whatever comes and is asked in between', () => {
  const blocks = 70
  const offset = fc.oneof(fc.constant(0), fc.nat(blocks))
  const range = fc.record({ offset, length: fc.nat(blocks) })
  const step = fc.record({ kind: fc.constantFrom('add', 'add', 'ask', 'ask', 'clear' as const), range })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const set = new BlockSet(blocks, 1)
      let there = new Set<number>()
      for (const { kind, range } of steps) {
        const numbers = Array.from({ length: range.length }, (_, at) => range.offset + at)
        const inside = numbers.filter((number) => number < blocks)
        if (kind === 'clear') {
          set.clear()
          there = new Set()
        } else if (kind === 'add') {
          set.add(range)
          for (const number of inside) there.add(number)
        } else {
          const missing = inside.filter((number) => !there.has(number))
          const runs = [...set.missing(range)]
          const found = runs.flatMap(({ offset, length }) => Array.from({ length }, (_, at) => offset + at))
          assert.deepEqual(found, missing)
          assert.equal(set.has(range), missing.length === 0)
          assert.ok(runs.every(({ offset }, at) => at === 0 || there.has(offset - 1)))
        }
      }
    }),
    { numRuns: 500 },
  )
})

test('a reader that asks ten thousand times for all of a large object does not stop the stager', () => {
  const sizeBytes = 64 * KIB ** 3
  const whole = { offset: 0, length: sizeBytes }
  const set = new BlockSet(sizeBytes, 4 * KIB)
  set.add({ offset: 0, length: sizeBytes / 2 })
  const startMs = performance.now()
  for (let times = 0; times < 10_000; times++) assert.equal(set.has(whole), false)
  assert.ok(performance.now() - startMs < 5000, `${performance.now() - startMs} ms`)
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
