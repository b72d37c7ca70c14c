import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatCount, groupDigits } from './format-count.js'

test('formatCount puts the noun into the number that the count asks for', () => {
  assert.deepEqual(
    [0, 1, 2, 1234].map((count) => formatCount(count, 'file')),
    ['0 files', '1 file', '2 files', '1,234 files'],
  )
  assert.equal(formatCount(1, 'copy', 'copies'), '1 copy')
  assert.equal(formatCount(2, 'copy', 'copies'), '2 copies')
})

test('groupDigits writes whole numbers as the engine writes them in English', () => {
  for (const count of [0, 7, 999, 1000, 12_345, 123_456, 1_234_567, Number.MAX_SAFE_INTEGER])
    assert.equal(groupDigits(count), count.toLocaleString('en-US'))
})
