import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTestFolder } from '../testing/sample-folder.js'
import { indexSamples, type SharedTables } from './index-samples.js'

for (const { name, text, told } of [
  { name: 'whose records are all fed', text: '{"a":1}\n{"a":2}\n', told: [] },
  { name: 'with a record that is left out', text: '{"a":1}\n{"a":\n{"a":3}\n', told: ['a.jsonl'] },
])
  test(`every node tells what is left out of a table ${name}`, async (context) => {
    const root = makeTestFolder(context)
    writeFileSync(join(root, 'a.jsonl'), text)
    const tables = new Map<string, Uint8Array>()
    const shared: SharedTables = {
      find: async (files) => tables.get(files),
      keep: (files, { bytes }) => void tables.set(files, bytes),
    }
    const indexOn = (cacheFolder: string) => indexSamples(root, { cacheFolder, shared, onDamage: 'skip' })
    const [first, second] = [makeTestFolder(context), makeTestFolder(context)]
    const runs = [await indexOn(first), await indexOn(second), await indexOn(second)]
    for (const { leftOut } of runs)
      assert.deepEqual(
        leftOut.map(({ path }) => path),
        told,
      )
    const isFound = told.length === 0
    assert.deepEqual(
      runs.map(({ isCached }) => isCached),
      [false, isFound, true],
    )
  })
