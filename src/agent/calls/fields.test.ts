import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fields, readInput, text } from './fields.js'

test('a value that is nested too deeply to be shown is refused by its name', () => {
  const deep = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000))
  assert.throws(() => readInput(fields({ name: text }), { name: deep }), {
    name: 'RangeError',
    message: 'name: expected a line of 0 to 4096 characters, found a value that is nested too deeply',
  })
})
