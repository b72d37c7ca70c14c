import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatTime } from './format-time.js'

test('a time is written as toISOString writes it', () => {
  const times = fc.oneof(
    fc.integer({ min: 0, max: 253_402_300_800_000 }),
    fc.integer({ min: -8.64e15, max: 8.64e15 }),
    fc.constantFrom(0, -1, 86_399_999, 86_400_000, 951_782_400_000, 253_402_300_799_999, 1.5),
  )
  fc.assert(fc.property(times, (ms) => assert.equal(formatTime(ms), new Date(ms).toISOString())))
})

test('what is no time is refused', () => {
  assert.throws(() => formatTime(Number.NaN), RangeError)
})
