import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deriveDatasetName, findOwner, isUndeclared, nameForOwner, parseDatasetName } from './dataset.js'
import { parseSourceUrl } from './source-url.js'

for (const { raw, parsed } of [
  { raw: 's3://bucket', parsed: { scheme: 's3', bucket: 'bucket', prefix: '' } },
  { raw: 's3://bucket/', parsed: { scheme: 's3', bucket: 'bucket', prefix: '' } },
  { raw: 's3://bucket/a/b', parsed: { scheme: 's3', bucket: 'bucket', prefix: 'a/b/' } },
  { raw: 'S3://bucket/a/b/', parsed: { scheme: 's3', bucket: 'bucket', prefix: 'a/b/' } },
  { raw: 's3://bucket/100% ü/', parsed: { scheme: 's3', bucket: 'bucket', prefix: '100% ü/' } },
  { raw: 'file:///data', parsed: { scheme: 'file', directory: '/data/' } },
  ...[
    { raw: 'hf://org/name', is: {} },
    { raw: 'hf://models/org/name/', is: {} },
    { raw: 'hf://datasets/org/name', is: { kind: 'datasets' } },
    { raw: 'hf://org/name@v1.0/sub/folder', is: { revision: 'v1.0', folder: 'sub/folder/' } },
    { raw: 'hf://org/name@release%2F1', is: { revision: 'release/1' } },
    { raw: 'hf://org/name@refs/pr/3/sub', is: { revision: 'refs/pr/3', folder: 'sub/' } },
    {
      raw: 'hf://datasets/org/name@refs/convert/parquet',
      is: { kind: 'datasets', revision: 'refs/convert/parquet' },
    },
    { raw: 'hf://gpt2', is: { repository: 'gpt2' } },
    { raw: 'hf://datasets/squad@main/data', is: { kind: 'datasets', repository: 'squad', folder: 'data/' } },
  ].map(({ raw, is }) => ({
    raw,
    parsed: { scheme: 'hf', kind: 'models', repository: 'org/name', revision: 'main', folder: '', ...is },
  })),
  ...[
    { raw: 'oci://GHCR.io/org/model', is: {} },
    { raw: 'oci://ghcr.io/org/model:v1.0', is: { reference: ':v1.0' } },
    {
      raw: `oci://localhost:5000/m:v1@sha256:${'a'.repeat(64)}`,
      is: { registry: 'localhost:5000', repository: 'm', reference: `@sha256:${'a'.repeat(64)}` },
    },
  ].map(({ raw, is }) => ({
    raw,
    parsed: { scheme: 'oci', registry: 'ghcr.io', repository: 'org/model', reference: ':latest', ...is },
  })),
  {
    raw: 'https://host/a/files.txt?x=1#part',
    parsed: { scheme: 'https', url: 'https://host/a/files.txt?x=1' },
  },
  { raw: 'file:///my%20data/', parsed: { scheme: 'file', directory: '/my data/' } },
]) {
  test(`parseSourceUrl reads ${raw}`, () => assert.deepEqual(parseSourceUrl(raw), parsed))
}

for (const { raw, problem } of [
  { raw: '', problem: /no scheme/ },
  { raw: '/data', problem: /no scheme/ },
  { raw: 'ftp://host/data', problem: /the scheme is ftp/ },
  { raw: 'https://me:secret@host/data', problem: /credentials/ },
  { raw: 'https://', problem: /no host/ },
  { raw: 's3:///prefix', problem: /bucket name/ },
  { raw: 's3://b/prefix', problem: /bucket name/ },
  { raw: 's3://key:secret@bucket/', problem: /credentials/ },
  { raw: 'oci://ghcr.io', problem: /names no repository/ },
  { raw: 'oci://org/model:v1', problem: /is not a registry/ },
  { raw: 'oci://ada:secret@ghcr.io/org/model', problem: /credentials/ },
  { raw: 'oci://ghcr.io/Org/model', problem: /names no repository/ },
  { raw: 'oci://ghcr.io/org/model@sha256:12', problem: /is neither a tag nor a sha256 digest/ },
  { raw: 'hf://spaces/org/name', problem: /a space holds a program/ },
  { raw: 'hf://', problem: /names no repository/ },
  { raw: 'hf://datasets/', problem: /names no repository/ },
  { raw: 'hf://org/na me', problem: /names no repository/ },
  { raw: 'hf://org/a--b', problem: /names no repository/ },
  { raw: 'hf://org/name@', problem: /no revision/ },
  { raw: 'hf://org/name/../x', problem: /segments/ },
  { raw: 'file://relative/dir', problem: /not absolute/ },
  { raw: 'file:///a/../b', problem: /segments/ },
  { raw: 'file:///a%00b', problem: /NUL/ },
  { raw: 'file:///a%zz', problem: /percent/ },
]) {
  test(`parseSourceUrl refuses ${JSON.stringify(raw)}`, () => {
    assert.throws(() => parseSourceUrl(raw), { name: 'RangeError', message: problem })
  })
}

test('parseSourceUrl never shows a secret that it refuses', () => {
  for (const raw of ['s3://key:hush@bucket/', 'ftp://host/x?X-Amz-Signature=hush', 'https://me:hush@host/x'])
    assert.throws(
      () => parseSourceUrl(raw),
      (error: Error) => !error.message.includes('hush'),
    )
})

test('parseDatasetName takes up to 100 plain characters and nothing else', () => {
  for (const name of ['a', '0', 'Flowers_v1.2-x', 'a'.repeat(100)]) assert.equal(parseDatasetName(name), name)
  for (const name of ['', '.', '..', '-a', 'a/b', 'a b', 'ä', 'a\n', 'a'.repeat(101)])
    assert.throws(() => parseDatasetName(name), RangeError, name)
})

test('deriveDatasetName is readable, stable and differs between sources with the same last folders', () => {
  assert.equal(deriveDatasetName('s3://ml-data/flowers/v1/'), 'ml-data-flowers-v1-211eb02e')
  assert.equal(deriveDatasetName('s3://ml-data/flowers/v1'), deriveDatasetName('s3://ml-data/flowers/v1/'))
  const endpoint = 'http://127.0.0.1:9000'
  assert.notEqual(deriveDatasetName('s3://bucket/x/', { endpoint }), deriveDatasetName('s3://bucket/x/'))
  assert.notEqual(deriveDatasetName('s3://bucket/x/a/b/c/'), deriveDatasetName('s3://bucket/y/a/b/c/'))
  parseDatasetName(deriveDatasetName(`s3://bucket/${'ü'.repeat(300)}/`))
  parseDatasetName(deriveDatasetName('file:///'))
})

test('the name of a private dataset tells its owner: a user, or a namespace that may look like one', () => {
  const source = 's3://bucket/x/'
  for (const owner of [
    0,
    10_001,
    'namespace:team-a',
    'namespace:10001',
    `namespace:${'n'.repeat(63)}`,
  ] as const) {
    const name = parseDatasetName(nameForOwner(deriveDatasetName(source), owner))
    assert.equal(findOwner(name), owner)
    assert.ok(isUndeclared({ name, source, include: [], exclude: [] }))
  }
  for (const name of ['private-0123abcd', 'private-0123abcd.ada', 'private-0123abcd.namespace-', 'flowers'])
    assert.equal(findOwner(name), undefined, name)
})
