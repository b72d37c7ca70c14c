import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleDataset } from '../../testing/example-copies.js'
import { chooseDataset } from './choose-dataset.js'

const FLOWERS = { ...exampleDataset('flowers'), source: 's3://ml-data/flowers/' }
const CATALOG = {
  declared: [FLOWERS, exampleDataset('secrets')],
  rules: {
    datasets: { secrets: ['team-a'], flowers: ['team-b'] },
    sources: {
      'team-b': ['s3://team-b/*', 'hf://*', 'https://data.example/team-b/*'],
      'team-c': ['s3://ml-data/*'],
    },
  },
}

test('a pod names a dataset of dsc.yaml, by its name or its URL', () => {
  assert.equal(chooseDataset(CATALOG, 'team-b', 'flowers'), FLOWERS)
  assert.equal(chooseDataset(CATALOG, 'team-b', 's3://ml-data/flowers/'), FLOWERS)
})

test('a URL names a dataset of dsc.yaml in every spelling, and of several the one that its pod may read', () => {
  for (const spelling of ['s3://ml-data/flowers', 'S3://ml-data/flowers/'])
    assert.equal(chooseDataset(CATALOG, 'team-b', spelling), FLOWERS)
  const own = { ...FLOWERS, name: 'own' }
  const rules = { datasets: { flowers: ['team-b'], own: ['team-a'] }, sources: {} }
  const both = { declared: [FLOWERS, own], rules }
  assert.equal(chooseDataset(both, 'team-a', FLOWERS.source), own)
  assert.throws(() => chooseDataset(both, 'team-c', FLOWERS.source), { status: 'PERMISSION_DENIED' })
})

test('a pod names a URL that its namespace may name', () => {
  const { name, source } = chooseDataset(CATALOG, 'team-b', 's3://team-b/birds/')
  assert.match(name, /^team-b-birds-[0-9a-f]{8}$/)
  assert.equal(source, 's3://team-b/birds/')
})

for (const [namespace, raw, expected] of [
  ['team-b', 'secrets', { status: 'PERMISSION_DENIED', message: /namespace "team-b" may not read secrets/ }],
  ['team-a', 's3://ml-data/flowers/', { status: 'PERMISSION_DENIED' }],
  ['team-c', 's3://ml-data/flowers', { status: 'PERMISSION_DENIED', message: /may not read/ }],
  ['team-b', 'https://data.example/team-b/../team-a/x.tar', { status: 'PERMISSION_DENIED' }],
  [
    'team-a',
    'https://data.example/team-b/x.tar?token=abc',
    {
      status: 'PERMISSION_DENIED',
      message: /may not name the source https:\/\/data\.example\/team-b\/x\.tar; /,
    },
  ],
  ['team-a', 's3://team-b/birds/', { status: 'PERMISSION_DENIED', message: /agent\.csi\.sources/ }],
  ['team-b', 'file:///etc/', { status: 'PERMISSION_DENIED' }],
  ['team-b', 'hf://', { code: 'USAGE' }],
  ['team-b', 'flwers', { code: 'DATASET_UNKNOWN', hint: 'dataset: flowers' }],
  [
    'team-b',
    'secret',
    { code: 'DATASET_UNKNOWN', hint: "one of flowers (datasets: of the agents' dsc.yaml)" },
  ],
  [
    'team-c',
    'flowers2',
    { code: 'DATASET_UNKNOWN', hint: "datasets: of the agents' dsc.yaml declares them" },
  ],
] as const)
  test(`a pod of ${namespace} is refused ${raw}`, () => {
    assert.throws(() => chooseDataset(CATALOG, namespace, raw), expected)
  })

test('a refusal names a declared source without its query, which may be secret', () => {
  const source = 'https://data.example/x.tar?key=abc'
  const declared = [{ ...FLOWERS, name: 'secrets', source }]
  assert.throws(() => chooseDataset({ ...CATALOG, declared }, 'team-b', source), {
    message: /may not read https:\/\/data\.example\/x\.tar; /,
  })
})
