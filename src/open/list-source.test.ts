import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { openMemorySource } from '../testing/memory-source.js'
import { listSource } from './list-source.js'

const OBJECTS = { 'train/b': 'bb', 'train/a': 'a', 'test/c': 'ccc', readme: '' }

async function surround(t: TestContext) {
  let closes = 0
  const source = openMemorySource(OBJECTS)
  const close = async () => {
    closes += 1
  }
  const { cache, makeDataset, prepare } = await openExampleCache(t, {
    openSource: async () => ({ ...source, close }),
  })
  const dataset = makeDataset('flowers', {})
  const context = exampleSurroundings(cache, t.signal, { datasets: [dataset] })
  return { context, prepare, dataset, closes: () => closes }
}

const shown = (files: readonly { readonly path: string; readonly size: number }[]) =>
  files.map(({ path, size }) => `${path} ${size}`)

test('a source is listed as a copy of it would be, and nothing is kept', async (t) => {
  const { context, prepare, dataset, closes } = await surround(t)
  const listed = await listSource(context, 'flowers', undefined)
  assert.deepEqual(shown(listed.files).toSorted(), ['readme 0', 'test/c 3', 'train/a 1', 'train/b 2'])
  assert.equal(listed.dataset, dataset)
  assert.equal(closes(), 1)
  const { copy } = await prepare(dataset)
  assert.equal(listed.version, copy.version)
})

test('of a split the files are named below its folder', async (t) => {
  const { context } = await surround(t)
  const { files } = await listSource(context, 'flowers', 'train')
  assert.deepEqual(shown(files).toSorted(), ['a 1', 'b 2'])
  assert.ok(files.every(({ object, path }) => object.key === `train/${path}`))
})

test('a split that the source does not have is refused, and the source closed', async (t) => {
  const { context, closes } = await surround(t)
  await assert.rejects(listSource(context, 'flowers', 'tra'), {
    code: 'COPY_NOT_FOUND',
    message: 'flowers has neither a folder nor files named for the split tra',
  })
  assert.equal(closes(), 1)
})
