import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Dataset, deriveDatasetName } from '../../model/dataset.js'
import type { Surroundings } from '../surroundings.js'
import { resolveDataset } from './resolve-dataset.js'

/** Surroundings whose record knows one dataset. */
function knowing(known: Dataset): Surroundings {
  const record = { findDataset: async (name: string) => (name === known.name ? known : undefined) }
  return { config: async () => ({ datasets: [] }), openRecord: async () => record } as unknown as Surroundings
}

for (const { source, named, found } of [
  { source: 's3://data/flowers/', named: 's3://data/flowers', found: 'known' },
  { source: 'hf://datasets/org/name', named: 'hf://datasets/org/name@main/', found: 'known' },
  { source: 's3://data/flowers/', named: 's3://data/birds/', found: 'named' },
  { source: 'https://h/a.tar?key=1', named: 'https://h/a.tar?key=2', found: 'named' },
]) {
  test(`${named} is the source ${found === 'known' ? `known as ${source}` : `as named, beside ${source}`}`, async () => {
    const known = { name: deriveDatasetName(source), source, region: 'eu-west-1', include: [], exclude: [] }
    const dataset = await resolveDataset(knowing(known), named)
    if (found === 'known') assert.deepEqual(dataset, known)
    else
      assert.deepEqual(dataset, { name: deriveDatasetName(named), source: named, include: [], exclude: [] })
  })
}
