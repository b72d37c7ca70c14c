import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { openDatasetFolder, openReadyFolder, prefixOf } from './open-dataset-folder.js'

/** Surroundings whose dsc.yaml declares `flowers`, with nothing of it here yet. */
async function surround(t: TestContext) {
  const { cache, makeDataset, prepare } = await openExampleCache(t)
  const dataset = makeDataset('flowers', { rose: 'red' })
  const context = exampleSurroundings(cache, t.signal, { datasets: [dataset] })
  const countLeases = async () => (await cache.record.listLeases({ dataset: 'flowers' })).length
  return { cache, context, dataset, prepare, countLeases }
}

test('a directory is opened as it is, and no copy is leased for it', async (t) => {
  const { context, cache } = await surround(t)
  mkdirSync(join(cache.root, 'train'))
  const whole = await openDatasetFolder(context, cache.root, undefined)
  assert.deepEqual([whole.folder, whole.copy], [cache.root, undefined])
  const split = await openDatasetFolder(context, cache.root, 'train')
  assert.equal(split.folder, join(cache.root, 'train'))
  await assert.rejects(openDatasetFolder(context, cache.root, 'test'), {
    code: 'COPY_NOT_FOUND',
    message: `${cache.root} has neither a folder nor files named for the split test`,
  })
})

test('a path that is no directory is not taken for the name of a dataset', async (t) => {
  const { context } = await surround(t)
  for (const path of ['/nowhere', './nowhere'])
    await assert.rejects(openDatasetFolder(context, path, undefined), {
      code: 'COPY_NOT_FOUND',
      message: `${path} is no directory`,
    })
})

test('a dataset that is not here is staged, and leased until it is released', async (t) => {
  const { context, countLeases } = await surround(t)
  const { folder, copy, release } = await openDatasetFolder(context, 'flowers', undefined)
  assert.equal(readFileSync(join(folder, 'rose'), 'utf8'), 'red')
  assert.equal(copy?.path, folder)
  assert.equal(await countLeases(), 1)
  assert.equal(context.told.progress.at(-1), undefined, 'the line of progress is cleared')
  await release()
  assert.equal(await countLeases(), 0)
})

test('a dataset without the folder of the split is staged, refused, and leased no more', async (t) => {
  const { context, countLeases } = await surround(t)
  await assert.rejects(
    openDatasetFolder(context, 'flowers', 'train'),
    /has neither a folder nor files named for the split train/,
  )
  assert.equal(await countLeases(), 0)
})

test('where nothing may be staged only what is ready and still there is opened', async (t) => {
  const { context, dataset, prepare, cache } = await surround(t)
  const refusal = { code: 'COPY_NOT_FOUND', message: /has no ready copy on node node-a/ }
  await assert.rejects(openReadyFolder(context, 'flowers', undefined), refusal)
  assert.ok(!existsSync(join(cache.root, 'copies')), 'nothing was staged')
  const { copy } = await prepare(dataset)
  const { folder, release } = await openReadyFolder(context, 'flowers', undefined)
  assert.equal(folder, copy.path)
  await release()
  const declaredAnew = exampleSurroundings(cache, t.signal, {
    datasets: [{ ...dataset, include: ['tulip'] }],
  })
  await assert.rejects(openReadyFolder(declaredAnew, 'flowers', undefined), refusal)
  rmSync(copy.directory, { recursive: true })
  await assert.rejects(openReadyFolder(context, 'flowers', undefined), refusal)
})

for (const { split, prefix } of [
  { split: undefined, prefix: '' },
  { split: '.', prefix: '' },
  { split: 'train', prefix: 'train/' },
  { split: 'train//', prefix: 'train/' },
  { split: './a/../train', prefix: 'train/' },
]) {
  test(`keys in the folder of split ${split} begin with '${prefix}'`, () =>
    assert.equal(prefixOf(split), prefix))
}
