import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ListPosition, moveBy, placeList, START } from './list-position.js'

const KEYS = Array.from({ length: 100 }, (_, at) => `k${at}`)

function walk(steps: readonly number[], keys = KEYS, height = 10): ListPosition {
  return steps.reduce(
    (position, by) => moveBy(placeList(position, { keys, height }), by, { keys, height }),
    START,
  )
}

for (const { name, steps, index, offset } of [
  { name: 'starts at the top', steps: [], index: 0, offset: 0 },
  { name: 'moves the cursor, not the window, while it fits', steps: [9], index: 9, offset: 0 },
  { name: 'scrolls by one when the cursor leaves at the bottom', steps: [9, 1], index: 10, offset: 1 },
  { name: 'scrolls back only at the top', steps: [20, -9], index: 11, offset: 11 },
  { name: 'stops at the end', steps: [1000], index: 99, offset: 90 },
  { name: 'stops at the beginning', steps: [1000, -1000], index: 0, offset: 0 },
]) {
  test(`the cursor ${name}`, () => {
    const window = placeList(walk(steps), { keys: KEYS, height: 10 })
    assert.deepEqual([window.index, window.offset], [index, offset])
  })
}

test('rows that come above neither move the cursor off its row nor the view', () => {
  const before = placeList(walk([50, -3]), { keys: KEYS, height: 10 })
  const after = placeList(before, { keys: ['new1', 'new2', ...KEYS], height: 10 })
  assert.deepEqual(
    [after.key, after.index, after.windowRow],
    [before.key, before.index + 2, before.windowRow],
  )
})

test('a row that is gone leaves the cursor at its place', () => {
  const before = placeList(walk([50]), { keys: KEYS, height: 10 })
  const after = placeList(before, { keys: KEYS.filter((key) => key !== before.key), height: 10 })
  assert.deepEqual([after.index, after.key], [50, 'k51'])
})

test('a window that shrinks keeps the cursor in sight', () => {
  const window = placeList(walk([9]), { keys: KEYS, height: 4 })
  assert.equal(window.index, 9)
  assert.ok(window.index >= window.offset && window.index < window.offset + 4)
})

test('an empty list has no cursor', () => {
  assert.equal(placeList(walk([5]), { keys: [], height: 10 }).key, undefined)
})
