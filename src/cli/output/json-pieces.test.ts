import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatJsonPieces } from './json-pieces.js'

test('the pieces together are what JSON.stringify writes', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.jsonValue(), fc.dictionary(fc.string(), fc.option(fc.jsonValue(), { nil: undefined }))),
      (data) => {
        assert.equal([...formatJsonPieces(data)].join(''), JSON.stringify(data))
      },
    ),
  )
})

for (const length of [0, 1, 1000, 1001, 2000, 2500]) {
  test(`a list of ${length} comes whole, and in no piece of more than 1,000`, () => {
    const data = { before: 1, list: Array.from({ length }, (_, index) => ({ index })), after: 'x' }
    const pieces = [...formatJsonPieces(data)]
    assert.equal(pieces.join(''), JSON.stringify(data))
    for (const piece of pieces) assert.ok(piece.split('index').length <= 1001)
  })
}
