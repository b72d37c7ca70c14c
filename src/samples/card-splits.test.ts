import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTestFolder } from '../testing/sample-folder.js'
import { readCardSplit } from './card-splits.js'

for (const { name, configs, split = 'train', globs } of [
  {
    name: 'paths by split',
    configs: '[{data_files: [{split: test, path: [a, b]}]}]',
    split: 'test',
    globs: ['a', 'b'],
  },
  { name: 'one path alone', configs: '[{data_files: main.csv}]', globs: ['main.csv'] },
  { name: 'paths alone', configs: '[{data_files: [a.csv, b.csv]}]', globs: ['a.csv', 'b.csv'] },
  {
    name: 'paths alone, asked for a test split',
    configs: '[{data_files: a.csv}]',
    split: 'test',
    globs: undefined,
  },
  {
    name: 'the default configuration beside one of another form',
    configs: '[{config_name: odd, data_files: 5}, {default: true, data_files: [{split: train, path: a}]}]',
    globs: ['a'],
  },
  { name: 'no files', configs: '[{config_name: default}]', globs: undefined },
])
  test(`a card names the files of a split: ${name}`, (context) => {
    const folder = makeTestFolder(context)
    writeFileSync(join(folder, 'README.md'), `---\nconfigs: ${configs}\n---\n# About\n`)
    assert.deepEqual(readCardSplit(folder, split), globs)
  })

test('a folder in place of a card names nothing', (context) => {
  const folder = makeTestFolder(context)
  mkdirSync(join(folder, 'README.md'))
  assert.equal(readCardSplit(folder, 'train'), undefined)
})
