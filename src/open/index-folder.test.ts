import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleCopy } from '../testing/example-copies.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { indexFolder } from './index-folder.js'

/** A folder of two lines of CSV, beside surroundings whose dsc.yaml says how `flowers` is read. */
async function makeFolder(t: TestContext) {
  const { cache, makeDataset } = await openExampleCache(t)
  const dataset = { ...makeDataset('flowers'), format: 'files' } as const
  const context = exampleSurroundings(cache, t.signal, { datasets: [dataset] })
  const folder = await temporaryDirectory(t)
  writeFileSync(join(folder, 'a.csv'), 'name,color\nrose,red\ntulip,yellow\n')
  const cacheFolder = await temporaryDirectory(t)
  const copy = exampleCopy('flowers', { source: dataset, directory: '/nowhere', path: folder })
  return { context, folder, cacheFolder, copy }
}

test('the declaration of a copy says how to read it, and the caller overrules it', async (t) => {
  const { context, folder, cacheFolder, copy } = await makeFolder(t)
  const formatOf = async (options: Partial<Parameters<typeof indexFolder>[2]>) =>
    (await indexFolder(context, folder, { cacheFolder, ...options })).format
  assert.equal(await formatOf({}), 'csv', 'a folder of nobody is read as what it holds')
  assert.equal(await formatOf({ copy }), 'files')
  assert.equal(await formatOf({ copy, format: 'csv' }), 'csv')
  const undeclared = { ...copy, dataset: 'another', source: { ...copy.source!, format: 'csv' as const } }
  assert.equal(await formatOf({ copy: undeclared }), 'csv', 'the copy knows its own source')
})

test('what is left out is a warning, and progress ends with it', async (t) => {
  const { context, folder, cacheFolder } = await makeFolder(t)
  writeFileSync(join(folder, 'notes.txt'), 'x')
  const { table } = await indexFolder(context, folder, { cacheFolder })
  assert.equal(table.count, 2)
  assert.match(context.told.warnings.join('\n'), /notes\.txt/)
  assert.equal(context.told.progress.at(-1), undefined)
})

test('a folder of several splits warns that all are read, unless one is named', async (t) => {
  const { context, cacheFolder } = await makeFolder(t)
  const folder = await temporaryDirectory(t)
  for (const split of ['train', 'test']) {
    mkdirSync(join(folder, split))
    writeFileSync(join(folder, split, 'a.bin'), split)
  }
  await indexFolder(context, join(folder, 'train'), { cacheFolder })
  assert.deepEqual(context.told.warnings, [])
  await indexFolder(context, folder, { cacheFolder })
  assert.match(context.told.warnings.join('\n'), /train/)
})
