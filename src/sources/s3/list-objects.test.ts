import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compareKeys } from '../../model/compare-keys.js'
import { ListingDisorder } from '../source.js'
import { listObjects } from './list-objects.js'
import type { ListPage, PageQuestion } from './list-page.js'

interface FakeServer {
  readonly keys: readonly string[]
  readonly pageKeys: number
  /** Default: by UTF-8 bytes, as S3. */
  readonly order?: (a: string, b: string) => number
  readonly ignoresStartAfter?: boolean
  readonly ignoresDelimiter?: boolean
  /** Turns of the event loop before the n-th answer. */
  readonly turns?: (n: number) => number
}

/** Lists as an S3 server does. */
function startFake({ keys, pageKeys, order = compareKeys, turns = () => 0, ...faults }: FakeServer) {
  const sorted = [...new Set(keys)].sort(order)
  const asked: PageQuestion[] = []
  let inFlight = 0
  const seen = { mostInFlight: 0 }
  const listPage: ListPage = async (question) => {
    asked.push(question)
    inFlight += 1
    seen.mostInFlight = Math.max(seen.mostInFlight, inFlight)
    for (let turn = turns(asked.length); turn > 0; turn -= 1) await new Promise(setImmediate)
    inFlight -= 1
    const { below = '', startAfter, continuation, delimiter } = question
    const after = continuation ?? (faults.ignoresStartAfter ? undefined : startAfter)
    const rest = sorted.filter(
      (key) => key.startsWith(below) && (after === undefined || order(key, after) > 0),
    )
    const folders = new Set<string>()
    const objects: string[] = []
    let last: string | undefined
    let isTruncated = false
    for (const key of rest) {
      const slash =
        delimiter === undefined || faults.ignoresDelimiter ? -1 : key.indexOf(delimiter, below.length)
      const folder = slash === -1 ? undefined : key.slice(0, slash + 1)
      if (folder !== undefined && folders.has(folder)) continue
      if (folders.size + objects.length === pageKeys) {
        isTruncated = true
        break
      }
      if (folder === undefined) objects.push(key)
      else folders.add(folder)
      last = key
    }
    return {
      objects: objects.map((key) => ({
        key,
        sizeBytes: 1,
        etag: null,
        versionId: null,
        checksum: null,
        modifiedAtMs: 0,
      })),
      folders: [...folders],
      isTruncated,
      continuation: isTruncated ? last : undefined,
    }
  }
  return { listPage, asked, sorted, seen }
}

async function collect(listPage: ListPage, options: { isSequential?: boolean; requestLimit?: () => number }) {
  const keys: string[] = []
  for await (const page of listObjects({ listPage, url: 's3://b/', ...options }))
    keys.push(...page.map(({ key }) => key))
  return keys
}

/** Like `list-into-manifest`: starts over when a server turns out not to keep the order. */
async function collectSafely(listPage: ListPage) {
  try {
    return { keys: await collect(listPage, {}), wasDisorder: false }
  } catch (error) {
    if (!(error instanceof ListingDisorder)) throw error
    return { keys: await collect(listPage, { isSequential: true }), wasDisorder: true }
  }
}

const nasty = fc.constantFrom(
  ...[
    '',
    'a',
    'b',
    'z',
    '0',
    '5',
    '9',
    '/',
    '-',
    '.',
    ' ',
    '+',
    '%',
    '&',
    '~',
    '\u007f',
    '\0',
    '\n',
    'é',
    '日',
    '\ud7ff',
  ],
  ...['\ue000', '\uffff', '😀', '\u{10ffff}', 'data/', 'part-00', 'img_'],
)
const anyKey = fc.array(nasty, { maxLength: 5 }).map((pieces) => pieces.join(''))
const numbered = fc
  .record({
    prefix: fc.constantFrom('', 'x-', 'd/e/f/', 'a-00'),
    digits: fc.integer({ min: 1, max: 8 }),
    count: fc.integer({ min: 1, max: 300 }),
  })
  .map(({ prefix, digits, count }) =>
    Array.from({ length: count }, (_, index) => `${prefix}${String(index * 7).padStart(digits, '0')}.jpg`),
  )
const foldered = fc
  .record({ folders: fc.integer({ min: 1, max: 20 }), files: fc.integer({ min: 1, max: 20 }) })
  .map(({ folders, files }) =>
    Array.from(
      { length: folders * files },
      (_, index) => `f${index % folders}/${Math.floor(index / folders)}`,
    ),
  )
const hashed = fc.uniqueArray(fc.uuid(), { maxLength: 200 })
const anyKeys = fc
  .tuple(
    fc.oneof(numbered, foldered, hashed, fc.array(anyKey, { maxLength: 200 })),
    fc.array(anyKey, { maxLength: 20 }),
  )
  .map(([keys, more]) => [...new Set([...keys, ...more])])
const anyTurns = fc
  .infiniteStream(fc.integer({ min: 0, max: 5 }))
  .map((stream) => () => Number(stream.next().value))
const anyServer = fc.record({ keys: anyKeys, pageKeys: fc.integer({ min: 1, max: 12 }), turns: anyTurns })

test('a listing in parts finds every key once, whatever the keys and the order of answers', async () => {
  await fc.assert(
    fc.asyncProperty(anyServer, async (server) => {
      const { listPage, sorted } = startFake(server)
      const { keys, wasDisorder } = await collectSafely(listPage)
      assert.equal(wasDisorder, false)
      assert.deepEqual(keys.sort(compareKeys), sorted)
    }),
    { numRuns: 300 },
  )
})

for (const [name, fault] of Object.entries({
  'orders keys by UTF-16': { order: (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0) },
  'orders keys without regard to case': {
    order: (a: string, b: string) => compareKeys(a.toLowerCase(), b.toLowerCase()) || compareKeys(a, b),
  },
  'orders keys backwards': { order: (a: string, b: string) => compareKeys(b, a) },
  'ignores start-after': { ignoresStartAfter: true },
  'ignores the delimiter': { ignoresDelimiter: true },
} satisfies Record<string, Partial<FakeServer>>)) {
  test(`every key is found once on a server that ${name}`, async () => {
    const mixed = fc.array(
      fc.string({ unit: fc.constantFrom('a', 'A', 'b', 'B', '\uffff', '😀'), minLength: 1, maxLength: 5 }),
      { maxLength: 200 },
    )
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          keys: fc.oneof(anyKeys, mixed),
          pageKeys: fc.integer({ min: 1, max: 12 }),
          turns: anyTurns,
        }),
        async (server) => {
          const { listPage, sorted } = startFake({ ...server, ...fault })
          const { keys } = await collectSafely(listPage)
          assert.deepEqual(keys.sort(compareKeys), [...sorted].sort(compareKeys))
        },
      ),
      { numRuns: 200 },
    )
  })
}

const FLAT = Array.from({ length: 20_000 }, (_, index) => `sample-${String(index).padStart(8, '0')}.jpg`)
const FOLDERED = Array.from(
  { length: 20_000 },
  (_, index) =>
    `train/part-${String(index % 200).padStart(3, '0')}/img-${String(index).padStart(8, '0')}.jpg`,
)
const GROUPED = Array.from(
  { length: 20_000 },
  (_, index) => `a-${String(index % 200).padStart(3, '0')}-${String(index).padStart(6, '0')}`,
)
for (const [name, keys] of Object.entries({ flat: FLAT, foldered: FOLDERED, grouped: GROUPED })) {
  test(`a ${name} key space is listed many pages at once, with few questions in vain`, async () => {
    const pages = keys.length / 100
    const { listPage, sorted, seen, asked } = startFake({ keys, pageKeys: 100, turns: () => 3 })
    assert.deepEqual((await collect(listPage, {})).sort(compareKeys), sorted)
    assert.ok(seen.mostInFlight >= 8, `${seen.mostInFlight} at once`)
    assert.ok(asked.length < pages * 1.5, `${asked.length} questions for ${pages} pages`)
  })
}

test('a request limit holds for the parts of a listing', async () => {
  const { listPage, seen } = startFake({ keys: FLAT, pageKeys: 100, turns: () => 3 })
  await collect(listPage, { requestLimit: () => 3 })
  assert.equal(seen.mostInFlight, 3)
})

test('a listing of two pages takes two questions', async () => {
  const { listPage, asked } = startFake({ keys: FLAT.slice(0, 200), pageKeys: 100 })
  await collect(listPage, {})
  assert.deepEqual(asked, [{ continuation: undefined }, { continuation: FLAT[99] }])
})

test('a listing whose reader stops early stops asking', async () => {
  const { listPage, asked } = startFake({ keys: FLAT, pageKeys: 100, turns: () => 1 })
  for await (const _ of listObjects({ listPage, url: 's3://b/' })) if (asked.length > 20) break
  const { length } = asked
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate)
  assert.equal(asked.length, length)
})

test('a failure in one part ends the listing with it', async () => {
  const { listPage } = startFake({ keys: FLAT, pageKeys: 100 })
  let asked = 0
  const failing: ListPage = async (question, signal) => {
    asked += 1
    if (asked === 30) throw new RangeError('broken')
    return listPage(question, signal)
  }
  await assert.rejects(collect(failing, {}), /broken/)
})
