import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { deriveDatasetName, isUndeclared } from '../../model/dataset.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { exampleDataset } from '../../testing/example-copies.js'
import { exampleSurroundings } from '../../testing/example-surroundings.js'
import { nameDataset } from './known-dataset.js'
import { resolveDataset } from './resolve-dataset.js'

const SPELLINGS = ['s3://bucket/photos/', 's3://bucket/photos', 'S3://bucket/photos/']

async function surround(t: TestContext, datasets = [exampleDataset('flowers')]) {
  const { cache } = await openExampleCache(t)
  return { record: cache.record, context: exampleSurroundings(cache, t.signal, { datasets }) }
}

for (const spelling of SPELLINGS) {
  test(`${spelling} is the declared dataset with that source, unless settings come with it`, async (t) => {
    const declared = exampleDataset('ours', { source: SPELLINGS[0]!, include: ['*.jpg'] })
    const { context } = await surround(t, [declared])
    assert.equal(await resolveDataset(context, spelling), declared)
    assert.equal(await nameDataset(context, spelling), 'ours')
    const given = await resolveDataset(context, spelling, { include: ['*.png'] })
    assert.deepEqual([given.include, isUndeclared(given)], [['*.png'], true])
  })

  test(`${spelling} is the dataset that the record learnt with another spelling`, async (t) => {
    const { record, context } = await surround(t)
    const name = deriveDatasetName(SPELLINGS[0]!)
    const known = exampleDataset(name, { source: SPELLINGS[0]!, endpoint: 'http://10.0.0.9:9000' })
    await record.saveDataset(known, 1)
    assert.deepEqual(await resolveDataset(context, spelling), known)
    assert.equal(await nameDataset(context, spelling), name)
  })
}

for (const { source, named, isKnown } of [
  { source: 'hf://datasets/org/name', named: 'hf://datasets/org/name@main/', isKnown: true },
  { source: 's3://data/flowers/', named: 's3://data/birds/', isKnown: false },
  { source: 'https://h/a.tar?key=1', named: 'https://h/a.tar?key=2', isKnown: false },
])
  test(`${named} is the source ${isKnown ? `known as ${source}` : `as named, beside ${source}`}`, async (t) => {
    const { record, context } = await surround(t)
    const known = exampleDataset(deriveDatasetName(source), { source, region: 'eu-west-1' })
    await record.saveDataset(known, 1)
    assert.deepEqual(
      await resolveDataset(context, named),
      isKnown ? known : exampleDataset(deriveDatasetName(named), { source: named }),
    )
  })

test('a dataset of another source that has the derived name is not taken for it', async (t) => {
  const { record, context } = await surround(t)
  const name = deriveDatasetName(SPELLINGS[0]!)
  await record.saveDataset(exampleDataset(name, { source: 's3://bucket/other/' }), 1)
  assert.deepEqual(await resolveDataset(context, SPELLINGS[1]!), {
    ...{ name, source: SPELLINGS[1], include: [], exclude: [] },
  })
})

test('a name is the declared dataset, then the added one, and takes no settings', async (t) => {
  const { record, context } = await surround(t)
  const added = exampleDataset('birds')
  await record.saveDataset(added, 1)
  assert.deepEqual(await resolveDataset(context, 'birds'), added)
  assert.equal((await resolveDataset(context, 'flowers')).source, 's3://bucket/flowers/')
  await assert.rejects(resolveDataset(context, 'flowers', { include: ['*.jpg'] }), {
    code: 'USAGE',
    hint: 'set include of flowers in dsc.yaml',
  })
  await assert.rejects(resolveDataset(context, 'nowhere'), { code: 'DATASET_UNKNOWN' })
})
