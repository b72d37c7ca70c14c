import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatStripe, parseStripe } from './copy.js'

test('a stripe is shown counting from one', () => {
  assert.equal(formatStripe(parseStripe({ index: 0, nodes: ['a', 'b'], more: 1 })), '1/2')
  assert.deepEqual(parseStripe({ index: 1, nodes: ['a', 'b'], more: 1 }), { index: 1, nodes: ['a', 'b'] })
})

for (const raw of [
  null,
  {},
  { index: 0, nodes: [] },
  { index: 2, nodes: ['a', 'b'] },
  { index: -1, nodes: ['a'] },
  { index: 0.5, nodes: ['a', 'b'] },
  { index: 0, nodes: ['a', 'a'] },
  { index: 0, nodes: ['a', ''] },
  { index: 0, nodes: 'a' },
  { index: 0, nodes: Array.from({ length: 1001 }, (_, at) => `n${at}`) },
]) {
  test(`parseStripe refuses ${JSON.stringify(raw)?.slice(0, 40)}`, () => {
    assert.throws(() => parseStripe(raw), RangeError)
  })
}
