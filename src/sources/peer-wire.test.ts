import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatPartDigest, parsePartDigest } from './peer-wire.js'

// The format that agents of other versions send and read: changing it needs a new WIRE_VERSION.
const PART = { offset: 16_777_216, length: 5, digest: 'sha256:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=' }
const HEADER = '16777216+5 sha256:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ='

test('the digest of a part travels with its place', () => {
  assert.equal(formatPartDigest(PART), HEADER)
  assert.deepEqual(parsePartDigest(HEADER), PART)
})

test('a malformed digest is refused', () => {
  for (const header of [undefined, '', 'sha256:aa', '0+5 sha512:aa', '0+5 sha256:', '-1+5 md5:aa', [HEADER]])
    assert.equal(parsePartDigest(header), undefined, String(header))
})
