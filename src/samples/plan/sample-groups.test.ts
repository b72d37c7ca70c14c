import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseWindow } from './sample-groups.js'

test('an order through groups has a width that follows from the data', () => {
  assert.equal(chooseWindow(100 * 2 ** 30, 1600), 4) // 64 MiB each
  assert.equal(chooseWindow(2 ** 30, 1024), 256)
  assert.equal(chooseWindow(2 ** 20, 8), 8)
})
