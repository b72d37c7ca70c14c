import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatNames } from './format-names.js'

test('formatNames names as many as may be shown, and counts the rest', () => {
  assert.equal(formatNames(['a', 'b'], 2), 'a, b')
  assert.equal(formatNames(['a', 'b', 'c', 'd'], 2), 'a, b and 2 more')
})
