import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mayNameSource, mayReadDataset } from './namespace-rights.js'

const RULES = {
  datasets: { flowers: ['team-a'], none: [] },
  sources: {
    '*': ['hf://datasets/public/*'],
    'team-a': ['s3://team-a/*', 'https://data.example/x.tar', 'file://*'],
  },
}

for (const [namespace, dataset, expected] of [
  ['team-a', 'flowers', true],
  ['team-b', 'flowers', false],
  ['', 'flowers', false],
  ['team-b', 'birds', true],
  ['team-a', 'none', false],
  ['team-b', 'constructor', true],
] as const)
  test(`pods of ${JSON.stringify(namespace)} ${expected ? 'may' : 'may not'} read ${dataset}`, () => {
    assert.equal(mayReadDataset(RULES, namespace, dataset), expected)
  })

for (const [namespace, url, expected] of [
  ['team-a', 's3://team-a/flowers/', true],
  ['team-b', 's3://team-a/flowers/', false],
  ['team-a', 's3://team-ab/flowers/', false],
  ['team-b', 'hf://datasets/public/birds', true],
  ['team-b', 'hf://datasets/private/birds', false],
  ['team-a', 'https://data.example/x.tar', true],
  ['team-a', 'https://data.example/x.tar.gz', false],
  ['team-a', 'file:///etc/', false],
  ['team-a', 'FILE:///etc/', false],
  ['constructor', 's3://x/', false],
] as const)
  test(`pods of ${namespace} ${expected ? 'may' : 'may not'} name ${url}`, () => {
    assert.equal(mayNameSource(RULES, namespace, url), expected)
  })
