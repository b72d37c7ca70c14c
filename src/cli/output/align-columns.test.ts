import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alignColumns } from './align-columns.js'

test('alignColumns sets columns two spaces apart and ends no line with spaces', () => {
  assert.equal(
    alignColumns([
      ['a', 'long', 'x'],
      ['long', 'b', ''],
    ]),
    'a     long  x\nlong  b',
  )
})
