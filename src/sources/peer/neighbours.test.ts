import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planNextLook } from './neighbours.js'

test('nodes that begin together look often at first, and every five seconds later', () => {
  assert.deepEqual(
    [0, 1, 2, 8, 9, 100].map((looks) => planNextLook(looks, 3)),
    [250, 500, 1000, 2000, 5000, 5000],
  )
})

test('the more nodes stage together, the less often each looks, so that the record bears all of them', () => {
  const rowsPerSecond = (stagers: number) => (stagers * stagers * 1000) / planNextLook(9, stagers)
  assert.equal(planNextLook(9, 100), 5000)
  assert.ok(
    rowsPerSecond(4096) <= 7 * rowsPerSecond(100),
    'what all read grows with the root of their number, not its square',
  )
})
