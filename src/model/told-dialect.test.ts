import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDialect } from './told-dialect.js'

for (const dialect of [
  {},
  { delimiter: ';' },
  { delimiter: '\u0001' },
  { quote: '"', header: true },
  { quote: 'none', header: false },
])
  test(`a dialect is parsed: ${JSON.stringify(dialect)}`, () => {
    assert.deepEqual(parseDialect(JSON.stringify(dialect)), dialect)
  })

for (const text of [
  '',
  '[]',
  'null',
  '{"delimiter":";;"}',
  '{"delimiter":"→"}',
  '{"delimiter":"\\""}',
  '{"delimiter":"\\n"}',
  '{"quote":"\'"}',
  '{"header":1}',
  '{"toString":1}',
])
  test(`a dialect is refused: ${text || 'nothing'}`, () => {
    assert.throws(() => parseDialect(text), { name: 'RangeError', message: /expected JSON with delimiter/ })
  })
