import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findMixParts } from '../feed/sources/find-mix-parts.js'
import { readAllSamples } from '../testing/read-all-samples.js'
import { makeTestFolder } from '../testing/sample-folder.js'
import { indexSamples } from './index-samples.js'
import { joinSamples } from './join-samples.js'

test('folders of several formats join into one, each sample with the name and the format of its part', async (context) => {
  const root = makeTestFolder(context)
  const files = {
    'web/a.jsonl': '{"i":0}\n{"i":1}\n',
    'web/b.jsonl': '{"i":2}\n',
    'books/a.csv': 'title\nMoby Dick\n',
    'files/x.bin': 'x',
    'files/y.bin': 'yy',
  }
  const parts = []
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  for (const name of ['web', 'books', 'files'])
    parts.push({ name, folder: await indexSamples(join(root, name), { cacheFolder: undefined }) })
  const joined = joinSamples(parts)
  const { table } = joined
  const rows = readAllSamples(joined).map((bytes, i) => [
    table.nameOf(i),
    String(bytes),
    table.encodingOf(i).format,
  ])
  assert.deepEqual(rows, [
    ['books/a.csv:0', 'Moby Dick', 'csv'],
    ['files/x.bin', 'x', 'file'],
    ['files/y.bin', 'yy', 'file'],
    ['web/a.jsonl:0', '{"i":0}', 'json'],
    ['web/a.jsonl:1', '{"i":1}', 'json'],
    ['web/b.jsonl:0', '{"i":2}', 'json'],
  ])
  assert.deepEqual(
    findMixParts(table, { web: 2, books: 1, files: 1 }).map(({ name, sampleCount }) => [name, sampleCount]),
    [
      ['books', 1],
      ['files', 2],
      ['web', 3],
    ],
  )
})
