import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { findMixParts } from './find-mix-parts.js'

const names = ['code/a/1', 'code/b/2', 'web/1', 'web/2', 'web/3']
const table = { count: names.length, nameOf: (sample: number) => names[sample]! }

test('the parts of a mix are the first folders of the names, each with its samples', () => {
  assert.deepEqual(findMixParts(table, { web: 0.5, code: 2 }), [
    { name: 'code', sampleCount: 2, times: 2 },
    { name: 'web', sampleCount: 3, times: 0.5 },
  ])
})

for (const { name, times, pattern } of [
  { name: 'leaves a folder out', times: { code: 1 }, pattern: /samples in web/ },
  { name: 'names a folder that is not there', times: { code: 1, web: 1, books: 1 }, pattern: /names books/ },
]) {
  test(`a mix that ${name} is refused with the folders there are`, () => {
    assert.throws(
      () => findMixParts(table, times),
      (error) =>
        isDscError(error, 'USAGE') && pattern.test(error.message) && /code=1,web=1/.test(error.hint ?? ''),
    )
  })
}
