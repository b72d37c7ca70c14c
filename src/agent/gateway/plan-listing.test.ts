import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type KeysFrom, planListing } from './plan-listing.js'

const bytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

function keysOf(keys: readonly string[]): KeysFrom {
  const sorted = keys.toSorted(bytes).map((key) => ({ key, sizeBytes: 1, etag: 'e', modifiedAtMs: 0 }))
  return (from) => sorted.filter(({ key }) => bytes(key, from) >= 0)
}

const QUERY = { prefix: '', delimiter: '', after: '', maxKeys: 1000, isUrlEncoded: false, showsOwner: false }
const OPEN = { continuationToken: undefined, startAfter: undefined }

/** All pages of a listing, one line per entry: `key` or `folder/*`. */
function listAll(keys: readonly string[], query: Partial<typeof QUERY>): readonly string[] {
  const lines: string[] = []
  for (let after: string | undefined = query.after ?? ''; after !== undefined; ) {
    const page = planListing({ ...QUERY, ...OPEN, ...query, after }, keysOf(keys))
    assert.ok(page.objects.length + page.commonPrefixes.length <= (query.maxKeys ?? 1000))
    lines.push(...page.objects.map(({ key }) => key), ...page.commonPrefixes.map((folder) => `${folder}*`))
    after = page.next
  }
  return lines
}

/** The same, computed the simple way. */
function expected(
  keys: readonly string[],
  prefix: string,
  delimiter: string,
  after: string,
): readonly string[] {
  const lines = new Set<string>()
  for (const key of keys) {
    if (!key.startsWith(prefix) || (after !== '' && bytes(key, after) <= 0)) continue
    const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
    const folder = end === -1 ? undefined : key.slice(0, end + 1)
    if (folder === undefined) lines.add(key)
    else if (folder !== after) lines.add(`${folder}*`)
  }
  return [...lines].toSorted(bytes)
}

for (const { name, keys, query, lines } of [
  {
    name: 'lists keys in the order of their bytes',
    keys: ['b', 'a', 'é', 'Z', '\u{1F600}', '\uFFFD'],
    query: {},
    lines: ['Z', 'a', 'b', 'é', '\uFFFD', '\u{1F600}'],
  },
  {
    name: 'keeps to the prefix',
    keys: ['a/1', 'b/1', 'b/2', 'c'],
    query: { prefix: 'b/' },
    lines: ['b/1', 'b/2'],
  },
  {
    name: 'folds folders',
    keys: ['a/1', 'a/2', 'b', 'c/1'],
    query: { delimiter: '/' },
    lines: ['b', 'a/*', 'c/*'],
  },
  {
    name: 'folds a folder once, also with a key behind which nothing sorts',
    keys: ['a/1', 'a/\u{10FFFF}', 'a/\u{10FFFF}x', 'b'],
    query: { delimiter: '/', maxKeys: 1 },
    lines: ['a/*', 'b'],
  },
  { name: 'starts behind a key', keys: ['a', 'b', 'c'], query: { after: 'b' }, lines: ['c'] },
  { name: 'asks for nothing when nothing may come', keys: ['a'], query: { maxKeys: 0 }, lines: [] },
])
  test(`planListing ${name}`, () => assert.deepEqual(listAll(keys, query), lines))

test('planListing says the same as a plain listing, in pages of any size', () => {
  const key = fc.stringMatching(/^[ab/é\u{1F600}]{1,6}$/u)
  const property = fc.property(
    fc.uniqueArray(key, { maxLength: 30 }),
    fc.constantFrom('', 'a', 'a/', 'b'),
    fc.constantFrom('', '/'),
    fc.integer({ min: 1, max: 5 }),
    fc.oneof(fc.constant(''), key),
    (keys, prefix, delimiter, maxKeys, after) => {
      const lines = listAll(keys, { prefix, delimiter, maxKeys, after })
      assert.deepEqual(lines.toSorted(bytes), expected(keys, prefix, delimiter, after))
    },
  )
  fc.assert(property, { numRuns: 2000 })
})

test('planListing passes over a folder by one look-up', () => {
  const keys = Array.from({ length: 10_000 }, (_, i) => `folder/${String(i).padStart(5, '0')}`)
  let looked = 0
  const all = keysOf([...keys, 'z'])
  const page = planListing({ ...QUERY, ...OPEN, delimiter: '/' }, function* (from) {
    for (const object of all(from)) {
      looked += 1
      yield object
    }
  })
  assert.deepEqual(page.commonPrefixes, ['folder/'])
  assert.ok(looked <= 3, `${looked} keys were looked at`)
})
