import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import { exampleCopy, exampleDataset } from '../../testing/example-copies.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { isAsPublished, isOfDefinition } from './take-ready-copy.js'

test('an adopted folder is as published while it is there and holds anything', async (context) => {
  const path = join(await temporaryDirectory(context), 'adopted')
  const adopted: Copy = exampleCopy('a', { origin: 'local', path, directory: '/nowhere' })
  assert.equal(isAsPublished(adopted), false, 'it is gone')
  mkdirSync(path)
  assert.equal(isAsPublished(adopted), false, 'it is empty')
  writeFileSync(join(path, 'a.txt'), 'a')
  assert.equal(isAsPublished(adopted), true)
})

for (const { name, change, isSame } of [
  { name: 'the same definition', change: {}, isSame: true },
  { name: 'another spelling of its source', change: { source: 'S3://bucket/a' }, isSame: true },
  { name: 'another source', change: { source: 's3://other/' }, isSame: false },
  { name: 'other includes', change: { include: ['*.jpg'] }, isSame: false },
  { name: 'other excludes', change: { exclude: ['*.tmp'] }, isSame: false },
  { name: 'another way to the same bytes', change: { endpoint: 'http://10.0.0.9:9000' }, isSame: true },
] satisfies { name: string; change: Partial<Dataset>; isSame: boolean }[])
  test(`a copy made from ${name} is ${isSame ? '' : 'not '}of the definition`, () => {
    assert.equal(isOfDefinition(exampleCopy('a'), { ...exampleDataset('a'), ...change }), isSame)
  })

test('a copy without a source is of any definition: nothing could be fetched anew', () => {
  assert.equal(isOfDefinition(exampleCopy('a', { source: null }), exampleDataset('a')), true)
})
