import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseHubRequest } from './parse-hub-request.js'

const of = { kind: 'models', repository: 'org/name', revision: 'main' } as const
const tree = { kind: 'tree', of, folder: '', isRecursive: false, after: undefined } as const

for (const [target, operation] of [
  ['/api/models/org/name', { kind: 'info', of }],
  ['/api/models/name', { kind: 'info', of: { ...of, repository: 'name' } }],
  [
    '/api/datasets/org/name/revision/refs%2Fpr%2F1',
    { kind: 'info', of: { kind: 'datasets', repository: 'org/name', revision: 'refs/pr/1' } },
  ],
  ['/api/models/org/name/tree/main', tree],
  [
    '/api/models/org/name/tree/main/a%2Fb?recursive=True&expand=False',
    { ...tree, folder: 'a/b/', isRecursive: true },
  ],
  ['/api/models/org/name/tree/main/a/b/?cursor=a%2Fb%2Fc', { ...tree, folder: 'a/b/', after: 'a/b/c' }],
  ['/api/models/org/name/paths-info/main', { kind: 'paths', of }],
  ['/api/models/org/name/refs', { kind: 'refs', of }],
  ['/api/models/org/name/commits/main?p=0', { kind: 'commits', of }],
  ['/api/models/org/name/revision/HEAD', { kind: 'info', of }],
  ['/org/name/raw/HEAD/a.txt', { kind: 'file', of, path: 'a.txt' }],
  ['/api/spaces/org/name', { kind: 'other' }],
  ['/api/models', { kind: 'other' }],
  ['/api/models/a/b/c', { kind: 'other' }],
  ['/api/models/org/name/tree', { kind: 'other' }],
  ['/org/name/resolve/main/a/b%20c.txt?download=true', { kind: 'file', of, path: 'a/b c.txt' }],
  ['/name/resolve/main/resolve', { kind: 'file', of: { ...of, repository: 'name' }, path: 'resolve' }],
  [
    '/datasets/name/resolve/v1/x',
    { kind: 'file', of: { kind: 'datasets', repository: 'name', revision: 'v1' }, path: 'x' },
  ],
] as const)
  test(`parseHubRequest reads ${target}`, () => assert.deepEqual(parseHubRequest(target), operation))

for (const target of [
  '/',
  '',
  '/bucket/key',
  '/api',
  '/org/name/resolve',
  '/org/name/resolve/main',
  '/a/b/c/resolve/main/x',
  '/%zz/name/resolve/main/x',
])
  test(`parseHubRequest leaves ${target || 'nothing'} to others`, () =>
    assert.equal(parseHubRequest(target), undefined))
