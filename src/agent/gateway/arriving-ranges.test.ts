import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import { PROVEN_ELSEWHERE } from '../../proof/prove-parts.js'
import { judgeParts } from './arriving-ranges.js'

const MD5 = { checksums: [], uploadPartBytes: null, isEtagMd5: true }
const NOTHING = { ...MD5, isEtagMd5: false }
const entry = {
  sizeBytes: 35,
  etag: '2c1743a391305fbf367df8e4f069f9f9',
  partBytes: 10,
  facts: MD5,
  state: 'missing',
} satisfies Partial<ManifestEntry>
const elsewhere = { proof: PROVEN_ELSEWHERE }
const own = { proof: null }

for (const { name, object, finished, range, expected } of [
  {
    name: 'an object that is proven',
    object: { ...entry, state: 'present' },
    finished: {},
    expected: 'there',
  },
  { name: 'no parts are planned', object: { ...entry, partBytes: null }, finished: {}, expected: 'coming' },
  { name: 'nothing of it came', object: entry, finished: { 0: own }, expected: 'coming' },
  {
    name: 'its parts came from who had proven them',
    object: entry,
    finished: { 1: elsewhere, 2: elsewhere },
    expected: 'there',
  },
  { name: 'one of its parts is on its way', object: entry, finished: { 1: elsewhere }, expected: 'coming' },
  {
    name: 'the store has one digest for the whole',
    object: entry,
    finished: { 1: elsewhere, 2: own },
    expected: 'never',
  },
  {
    name: 'the store has no digest',
    object: { ...entry, facts: NOTHING },
    finished: { 1: own, 2: own },
    expected: 'there',
  },
  {
    name: 'it ends where a part does',
    object: entry,
    finished: { 1: elsewhere },
    range: { offset: 10, length: 10 },
    expected: 'there',
  },
] as const)
  test(`a range is ${expected} when ${name}`, () => {
    const parts = new Map(Object.entries(finished).map(([number, part]) => [Number(number), part]))
    const found = judgeParts(object, parts, range ?? { offset: 15, length: 10 })
    assert.equal(found.outcome, expected)
  })

test('of a range that is coming whole parts are asked for', () => {
  assert.deepEqual(judgeParts(entry, new Map(), { offset: 29, length: 2 }), {
    outcome: 'coming',
    parts: { offset: 20, length: 15 },
  })
})
