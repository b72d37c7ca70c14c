import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { createDigest, type DigestAlgorithm, formatDigest } from './digest.js'
import { planParts } from './plan-parts.js'
import type { Proof } from './plan-proof.js'
import { PROVEN_ELSEWHERE, proveParts } from './prove-parts.js'

const BYTES = randomBytes(3000)
const PARTS = planParts(BYTES.length, 1000)
const PROOF: Proof = {
  kind: 'combine',
  algorithm: 'crc32c',
  expected: digestOf('crc32c', BYTES).toString('hex'),
}

function digestOf(algorithm: DigestAlgorithm, bytes: Uint8Array): Buffer {
  const digest = createDigest(algorithm)
  digest.update(bytes)
  return digest.finish()
}

function finish(isElsewhere: (number: number) => boolean) {
  return PARTS.map(({ number, offset, length }) => {
    const bytes = BYTES.subarray(offset, offset + length)
    const ownProof = formatDigest('crc32c', digestOf('crc32c', bytes))
    return {
      digest: formatDigest('sha256', digestOf('sha256', bytes)),
      proof: isElsewhere(number) ? PROVEN_ELSEWHERE : ownProof,
    }
  })
}

test('parts that another node has proven need no other proof: the file is not read', async () => {
  const verifiedBy = await proveParts({
    key: 'a.bin',
    path: '/there/is/no/such/file',
    proof: PROOF,
    parts: PARTS,
    finished: finish(() => true),
    signal: AbortSignal.timeout(60_000),
  })
  assert.equal(verifiedBy, 'own-sha256')
})

test('where the source’s checksum is made of the digests that the parts have anyway, it is compared all the same', async () => {
  const options = {
    key: 'a.bin',
    path: '/there/is/no/such/file',
    proof: PROOF,
    parts: PARTS,
    finished: finish(() => false).map(({ proof }) => ({ digest: proof, proof: PROVEN_ELSEWHERE })),
    signal: AbortSignal.timeout(60_000),
  }
  assert.equal(await proveParts(options), 'crc32c')
  const proof: Proof = { ...PROOF, expected: '00000000' }
  await assert.rejects(proveParts({ ...options, proof }), { code: 'CHECKSUM_MISMATCH' })
})

test('where some parts came from another node and some from the source, the whole is proven by the source’s checksum', async (context) => {
  const path = join(await temporaryDirectory(context), 'a.bin')
  await writeFile(path, BYTES)
  const finished = finish((number) => number === 1)
  const options = {
    key: 'a.bin',
    path,
    proof: PROOF,
    parts: PARTS,
    finished,
    signal: AbortSignal.timeout(60_000),
  }
  assert.equal(await proveParts(options), 'crc32c')
  await writeFile(path, Buffer.from(BYTES).fill(0, 1500, 1510))
  await assert.rejects(proveParts(options), { code: 'CHECKSUM_MISMATCH' })
})
