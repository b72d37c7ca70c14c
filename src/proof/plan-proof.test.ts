import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ObjectFacts } from './object-facts.js'
import { planProof } from './plan-proof.js'

const MD5 = '0cc175b9c0f1b6a831c399e269772661'
const none: ObjectFacts = { checksums: [], uploadPartBytes: null, isEtagMd5: true }
const crc64 = { algorithm: 'crc64nvme', value: 'AAAAAAAAAAE=', isComposite: false } as const
const sha256 = { algorithm: 'sha256', value: 'AQID', isComposite: false } as const
const parts = { algorithm: 'crc32', value: 'AAAAAQ==-3', isComposite: true } as const

for (const { name, etag = null, facts = none, proof } of [
  {
    name: 'takes a checksum of the whole first',
    etag: MD5,
    facts: { ...none, checksums: [crc64] },
    proof: { kind: 'combine', algorithm: 'crc64nvme', expected: '0000000000000001' },
  },
  {
    name: 'prefers what costs least',
    facts: { ...none, checksums: [sha256, crc64] },
    proof: { kind: 'combine', algorithm: 'crc64nvme', expected: '0000000000000001' },
  },
  {
    name: 'takes a hash of the whole',
    facts: { ...none, checksums: [sha256] },
    proof: { kind: 'whole', algorithm: 'sha256', expected: '010203' },
  },
  {
    name: 'takes a composite checksum when the parts are the same',
    facts: { ...none, checksums: [parts], uploadPartBytes: 10 },
    proof: { kind: 'digest-of-digests', algorithm: 'crc32', expected: '00000001', isCertain: true },
  },
  {
    name: 'cannot use a composite checksum of other parts',
    facts: { ...none, checksums: [parts], uploadPartBytes: 5 },
    proof: { kind: 'size' },
  },
  {
    name: 'takes an MD5 etag',
    etag: MD5,
    proof: { kind: 'whole', algorithm: 'md5', expected: MD5, isOfEtag: true },
  },
  {
    name: 'takes a multipart etag when the parts are the same',
    etag: `${MD5}-2`,
    facts: { ...none, uploadPartBytes: 10 },
    proof: { kind: 'digest-of-digests', algorithm: 'md5', expected: MD5, isCertain: true, isOfEtag: true },
  },
  {
    name: 'takes the etag of an upload in one part',
    etag: `${MD5}-1`,
    proof: { kind: 'digest-of-digests', algorithm: 'md5', expected: MD5, isCertain: true, isOfEtag: true },
  },
  { name: 'cannot use a multipart etag of other parts', etag: `${MD5}-2`, proof: { kind: 'size' } },
  {
    name: 'does not take an encrypted object’s etag for an MD5',
    etag: MD5,
    facts: { ...none, isEtagMd5: false },
    proof: { kind: 'size' },
  },
  { name: 'does not take any etag for an MD5', etag: 'file-1', proof: { kind: 'size' } },
] satisfies { name: string; etag?: string; facts?: ObjectFacts; proof: object }[]) {
  test(`planProof ${name}`, () => {
    assert.deepEqual(planProof({ sizeBytes: 20, etag, partBytes: 10, facts }), proof)
  })
}
