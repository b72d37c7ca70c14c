import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { indexFolder } from './index-folder.js'
import { openJoined } from './open-joined.js'

async function open(t: TestContext) {
  const { cache, makeDataset } = await openExampleCache(t)
  const datasets = ['flowers', 'birds'].map((name) => makeDataset(name, { 'a.bin': name, 'b.bin': name }))
  const context = exampleSurroundings(cache, t.signal, { datasets })
  const cacheFolder = await temporaryDirectory(t)
  const join = (...targets: string[]) =>
    openJoined(context, targets, {
      split: undefined,
      index: (folder, copy) => indexFolder(context, folder, { copy, cacheFolder }),
    })
  const listHeld = async () => (await cache.record.listLeases({})).map(({ dataset }) => dataset).toSorted()
  return { join, listHeld, cacheFolder }
}

test('datasets joined are one table, named by dataset, and leased until they are released', async (t) => {
  const { join, listHeld } = await open(t)
  const joined = await join('flowers', 'birds')
  assert.equal(joined.folder.table.count, 4)
  assert.deepEqual(Object.fromEntries(joined.names), { flowers: 'flowers', birds: 'birds' })
  assert.deepEqual(await listHeld(), ['birds', 'flowers'])
  await joined.release()
  assert.deepEqual(await listHeld(), [])
})

test('two targets of one name are refused, and what was leased for them is given back', async (t) => {
  const { join: openAll, listHeld, cacheFolder } = await open(t)
  const folder = join(cacheFolder, 'flowers')
  mkdirSync(folder)
  writeFileSync(join(folder, 'a.bin'), 'x')
  await assert.rejects(openAll('birds', 'flowers', folder), {
    code: 'USAGE',
    message: 'two of the datasets are named flowers',
  })
  assert.deepEqual(await listHeld(), [])
})
