import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mayNameSource, mayReadDataset } from './namespace-rights.js'

const RULES = {
  datasets: { flowers: ['team-a'], none: [] },
  sources: {
    '*': ['hf://datasets/public/*'],
    'team-a': [
      's3://team-a/*',
      'https://data.example/x.tar',
      'https://data.example/mine/*',
      'hf://models/team-a/*',
      'hf://team-a/named',
      'file://*',
    ],
    'team-b': ['hf://m*'],
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
  ['team-a', 'S3://team-a/flowers', true],
  ['team-a', 'https://DATA.example:443/./x.tar', true],
  ['team-a', 'https://data.example/mine/y.tar', true],
  ['team-a', 'https://data.example/mine/../theirs/y.tar', false],
  ['team-a', 'https://data.example/mine/%2e%2e/theirs/y.tar', false],
  ['team-a', 'https://data.example/mine/..%2ftheirs/y.tar', false],
  ['team-a', 'https://data.example/mine/..%5Ctheirs/y.tar', false],
  ['team-a', 'https://data.example/mine/%252e%252e%252ftheirs/y.tar', false],
  ['team-a', 'https://data.example/mine/..;a=b/theirs/y.tar', false],
  ['team-a', 'https://data.example/mine/%25%32%65%25%32%65%2Ftheirs/y.tar', false],
  ['team-a', `https://data.example/mine/${'%3'.repeat(20)}5`, false],
  ['team-a', 'https://data.example/mine/100%25%20of%20..a%2Fb.tar', true],
  ['team-a', 'https://data.example\\@evil.example/mine/y.tar', false],
  ['team-a', 'hf://models/team-a/bert', true],
  ['team-a', 'hf://team-a/bert', true],
  ['team-a', 'hf://datasets/team-a/birds', false],
  ['team-a', 'hf://models/models/team-a', false],
  ['team-b', 'hf://models/other/bert', false],
  ['team-b', 'hf://mine/bert', true],
  ['team-a', 'hf://team-a/named', true],
  ['team-a', 'nothing', false],
] as const)
  test(`pods of ${namespace} ${expected ? 'may' : 'may not'} name ${url}`, () => {
    assert.equal(mayNameSource(RULES, namespace, url), expected)
  })
