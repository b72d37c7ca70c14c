import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findValley } from './find-valley.js'

for (const { name, best, starts, stride, nearest, off } of [
  { name: 'at the start', best: 100, starts: [100], stride: 4, nearest: 1, off: 0 },
  { name: 'next to the start', best: 101, starts: [100], stride: 4, nearest: 1, off: 0 },
  { name: 'far from the start', best: 263, starts: [100], stride: 4, nearest: 1, off: 0 },
  { name: 'at the other end', best: 0, starts: [263], stride: 1, nearest: 1, off: 0 },
  {
    name: 'near one of several starts',
    best: 190,
    starts: [0, 66, 132, 198, 264],
    stride: 33,
    nearest: 1,
    off: 0,
  },
  { name: 'as near as it was asked to', best: 101, starts: [90], stride: 8, nearest: 2, off: 1 },
]) {
  test(`findValley finds a valley ${name}, with few looks`, () => {
    const looks = new Set<number>()
    const valueAt = (count: number) => {
      looks.add(count)
      return Math.abs(count - best)
    }
    const found = findValley(valueAt, { starts, most: 264, stride, nearest })
    assert.ok(Math.abs(found - best) <= off, `${found}`)
    assert.ok(looks.size <= 24, `${looks.size} looks`)
    assert.ok([...looks].every((count) => count >= 0 && count <= 264))
  })
}

test('findValley leaves a place without a value for one with a value', () => {
  const valueAt = (count: number) => (count < 8 ? Number.POSITIVE_INFINITY : count)
  assert.equal(findValley(valueAt, { starts: [2, 16], most: 16, stride: 4, nearest: 1 }), 8)
})
