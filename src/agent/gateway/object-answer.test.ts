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
const NOTHING_ASKED = { asked: {}, headers: {} } as Parameters<typeof headersOf>[0]
const RANGE = { status: 206, offset: 0, length: 8 * MIB } as const

test('a part is sent with the number of parts, and a range is not', () => {
  assert.equal(headersOf(NOTHING_ASKED, ENTRY, { ...RANGE, parts: 3 })['x-amz-mp-parts-count'], 3)
  assert.ok(!('x-amz-mp-parts-count' in headersOf(NOTHING_ASKED, ENTRY, RANGE)))
})

test('headers that a client wants in the answer to GetObject are there, and none of them in a 304', () => {
  const wanted = { 'content-type': 'image/png', 'content-disposition': 'attachment; filename="a"' }
  const request = { ...NOTHING_ASKED, asked: { ...NOTHING_ASKED.asked, answerHeaders: wanted } }
  const headers = headersOf(request, ENTRY, RANGE)
  assert.equal(headers['content-type'], 'image/png')
  assert.equal(headers['content-disposition'], 'attachment; filename="a"')
  assert.ok(!('content-type' in headersOf(request, ENTRY, { status: 304 })))
})

test('the checksum of an object that is read from its source is what the source says of it', () => {
  const facts = {
    checksums: [
      { algorithm: 'sha256', value: 'parts-3', isComposite: true },
      { algorithm: 'crc32', value: 'AAAAAA==', isComposite: false },
    ],
    uploadPartBytes: null,
    isEtagMd5: false,
  } as const
  const whole = { status: 200, offset: 0, length: 20 * MIB } as const
  const asking = { ...NOTHING_ASKED, headers: { 'x-amz-checksum-mode': 'ENABLED' }, facts }
  assert.equal(headersOf(asking, ENTRY, whole)['x-amz-checksum-crc32'], 'AAAAAA==')
  assert.equal(headersOf(asking, ENTRY, whole)['x-amz-checksum-type'], 'FULL_OBJECT')
  for (const request of [
    { ...NOTHING_ASKED, facts },
    { ...asking, facts: { ...facts, checksums: [] } },
  ])
    assert.ok(!('x-amz-checksum-crc32' in headersOf(request, { ...ENTRY, facts: null, digest: null }, whole)))
  assert.ok(!('x-amz-checksum-crc32' in headersOf(asking, ENTRY, RANGE)))
})
