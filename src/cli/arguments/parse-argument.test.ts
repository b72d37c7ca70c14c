import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidArgumentError } from 'commander'
import { parseByteSize } from '../../model/byte-size.js'
import { argument, parseCount, parsePercent } from './parse-argument.js'

test('argument turns a RangeError into a mistake of the arguments, and nothing else', () => {
  assert.throws(() => argument(parseByteSize)('5XB'), InvalidArgumentError)
  assert.throws(
    () =>
      argument(() => {
        throw new TypeError('bug')
      })(''),
    TypeError,
  )
})

test('parsePercent reads 0 < x ≤ 100 only', () => {
  assert.deepEqual(['80', '80%', '0.5'].map(parsePercent), [80, 80, 0.5])
  for (const raw of ['0', '101', '-1', 'x', '']) assert.throws(() => parsePercent(raw), RangeError)
})

test('parseCount reads whole numbers from 1 only', () => {
  assert.equal(parseCount('12'), 12)
  for (const raw of ['0', '1.5', '-1', '1e3', '']) assert.throws(() => parseCount(raw), RangeError)
})
