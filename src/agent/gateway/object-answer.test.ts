import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headersOf } from './object-answer.js'

const MIB = 1024 * 1024
const ENTRY = {
  key: 'a',
  sizeBytes: 20 * MIB,
  etag: 'abc-3',
  versionId: null,
  modifiedAtMs: 0,
} as Parameters<typeof headersOf>[1]
const RANGE = { status: 206, offset: 0, length: 8 * MIB } as const

test('a part is sent with the number of parts, and a range is not', () => {
  assert.equal(headersOf({}, ENTRY, { ...RANGE, parts: 3 })['x-amz-mp-parts-count'], 3)
  assert.ok(!('x-amz-mp-parts-count' in headersOf({}, ENTRY, RANGE)))
})
