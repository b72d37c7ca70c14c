import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { combineCrcs } from './combine-crc.js'
import type { CrcAlgorithm } from './crc-polynomials.js'
import { createDigest, type DigestAlgorithm } from './digest.js'

function digestOf(algorithm: DigestAlgorithm, ...chunks: Uint8Array[]): string {
  const digest = createDigest(algorithm)
  for (const chunk of chunks) digest.update(chunk)
  return digest.finish().toString('hex')
}

// Check values of the CRC catalogue: the CRC of the nine bytes "123456789".
for (const { algorithm, check } of [
  { algorithm: 'crc32', check: 'cbf43926' },
  { algorithm: 'crc32c', check: 'e3069283' },
  { algorithm: 'crc64nvme', check: 'ae8b14860a799888' },
  { algorithm: 'md5', check: '25f9e794323b453885f5181f1b624d0b' },
  { algorithm: 'sha1', check: 'f7c3bc1d808e04732adf679965ccc34ca7ae3441' },
  { algorithm: 'sha256', check: '15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225' },
] satisfies { algorithm: DigestAlgorithm; check: string }[]) {
  test(`${algorithm} of "123456789" is ${check}`, () => {
    assert.equal(digestOf(algorithm, Buffer.from('123456789')), check)
  })
}

/** The CRC by definition, bit by bit. */
function naiveCrc(algorithm: CrcAlgorithm, data: Uint8Array): string {
  const bits = algorithm === 'crc64nvme' ? 64 : 32
  const polynomial = { crc32: 0xedb88320n, crc32c: 0x82f63b78n, crc64nvme: 0x9a6c9329ac4bc9b5n }[algorithm]
  const ones = (1n << BigInt(bits)) - 1n
  let crc = ones
  for (const byte of data) {
    crc ^= BigInt(byte)
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1n ? (crc >> 1n) ^ polynomial : crc >> 1n
  }
  return (crc ^ ones).toString(16).padStart(bits / 4, '0')
}

const bytes = fc.uint8Array({ maxLength: 200 })
for (const algorithm of ['crc32', 'crc32c', 'crc64nvme'] as const) {
  test(`${algorithm} is the naive one, however the bytes are cut`, () => {
    fc.assert(
      fc.property(fc.array(bytes, { maxLength: 5 }), fc.nat(7), (chunks, shift) => {
        // Unaligned views too: bytes from a socket start anywhere.
        const views = chunks.map((chunk) => Buffer.concat([Buffer.alloc(shift), chunk]).subarray(shift))
        assert.equal(digestOf(algorithm, ...views), naiveCrc(algorithm, Buffer.concat(chunks)))
      }),
    )
  })

  test(`${algorithm} is the naive one for more than its module takes at once`, () => {
    const data = Buffer.from(Array.from({ length: 150_005 }, (_, index) => (index * index) % 253))
    assert.equal(digestOf(algorithm, data), naiveCrc(algorithm, data))
  })

  test(`${algorithm} is the naive one around the lengths where its way changes`, () => {
    const data = Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * index) % 251))
    for (const bytes of [4095, 4096, 4097, 4159, 4160, 65_536, 67_583, 67_584, 67_585, 67_648]) {
      const before = data.subarray(0, 3)
      const cut = data.subarray(1, 1 + bytes)
      assert.equal(digestOf(algorithm, before, cut), naiveCrc(algorithm, Buffer.concat([before, cut])))
    }
  })

  test(`combineCrcs makes the ${algorithm} of a whole from those of its parts`, () => {
    fc.assert(
      fc.property(fc.array(bytes, { minLength: 1, maxLength: 5 }), (chunks) => {
        const parts = chunks.map((chunk) => ({
          crc: Buffer.from(digestOf(algorithm, chunk), 'hex'),
          length: chunk.length,
        }))
        const whole = digestOf(algorithm, Buffer.concat(chunks))
        assert.equal(combineCrcs(algorithm, parts).toString('hex'), whole)
      }),
    )
  })
}

test('combineCrcs is right for parts of real size', () => {
  const part = Buffer.alloc(5 * 1024 * 1024 + 3, 'xyz')
  const crc = Buffer.from(digestOf('crc32', part), 'hex')
  const whole = combineCrcs('crc32', [
    { crc, length: part.length },
    { crc, length: part.length },
  ])
  assert.equal(whole.readUInt32BE(), crc32(Buffer.concat([part, part])))
})
