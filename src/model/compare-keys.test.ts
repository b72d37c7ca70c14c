import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compareKeys } from './compare-keys.js'

test('compareKeys orders as the UTF-8 bytes do', () => {
  const key = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 4 }),
    fc.string({ unit: fc.constantFrom('a', '\uffff', '\ue000', '\ud7ff', '😀', '\u{10ffff}'), maxLength: 4 }),
  )
  fc.assert(
    fc.property(key, key, (a, b) => {
      assert.equal(Math.sign(compareKeys(a, b)), Buffer.compare(Buffer.from(a), Buffer.from(b)))
    }),
    { numRuns: 2000 },
  )
})
