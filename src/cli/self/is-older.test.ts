import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOlder } from './is-older.js'

for (const [a, b, expected] of [
  ['0.1.0', '0.2.0', true],
  ['0.2.0', '0.1.0', false],
  ['0.9.0', '0.10.0', true],
  ['1.0.0', '1.0.0', false],
  ['1.0.0-rc.1', '1.0.0', true],
  ['1.0.0', '1.0.0-rc.1', false],
  ['1.0.0-rc.2', '1.0.0-rc.10', true],
  ['1.0.0+build.2', '1.0.0+build.1', false],
] as const) {
  test(`${a} is ${expected ? '' : 'not '}older than ${b}`, () => assert.equal(isOlder(a, b), expected))
}
