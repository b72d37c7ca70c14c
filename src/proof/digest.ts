import { createHash, type Hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { getCrc } from './crc.js'
import type { CrcAlgorithm } from './crc-polynomials.js'

/** Every checksum that dsc computes. */
export type DigestAlgorithm = CrcAlgorithm | 'sha256' | 'sha1' | 'md5' | 'git-sha1'

/** From this size on, folding is quicker: zlib's CRC-32 takes twice as long (0.21 instead of 0.10 s per GiB). */
const WORTH_FOLDING_BYTES = 32 * 1024

/** Takes bytes in order and returns their digest at the end. */
export interface Digest {
  readonly algorithm: DigestAlgorithm
  update(chunk: Uint8Array): void
  /** Big-endian, as S3 writes it before base64. Call once. */
  finish(): Buffer
}

/** Starts a digest; only git's needs `lengthBytes`. */
export function createDigest(algorithm: DigestAlgorithm, lengthBytes?: number): Digest {
  switch (algorithm) {
    case 'crc32':
      return createCrc32Digest()
    case 'crc32c':
      return createCrcDigest(algorithm, 4)
    case 'crc64nvme':
      return createCrcDigest(algorithm, 8)
    case 'git-sha1':
      if (lengthBytes === undefined)
        throw new Error('git names bytes by their number, too: expected a length')
      return createHashDigest(algorithm, createHash('sha1').update(`blob ${lengthBytes}\0`))
    default:
      return createHashDigest(algorithm, createHash(algorithm))
  }
}

function createHashDigest(algorithm: DigestAlgorithm, hash: Hash): Digest {
  return { algorithm, update: (chunk) => void hash.update(chunk), finish: () => hash.digest() }
}

function createCrc32Digest(): Digest {
  let value = 0
  return {
    algorithm: 'crc32',
    update(chunk) {
      if (chunk.length < WORTH_FOLDING_BYTES) value = crc32(chunk, value)
      else value = Number(getCrc('crc32')(chunk, BigInt(value)))
    },
    finish() {
      const bytes = Buffer.alloc(4)
      bytes.writeUInt32BE(value)
      return bytes
    },
  }
}

function createCrcDigest(algorithm: 'crc32c' | 'crc64nvme', digestBytes: number): Digest {
  const update = getCrc(algorithm)
  let value = 0n
  return {
    algorithm,
    update(chunk) {
      value = update(chunk, value)
    },
    finish: () => Buffer.from(value.toString(16).padStart(digestBytes * 2, '0'), 'hex'),
  }
}

/** A digest in the manifest's form: `algorithm:base64`. */
export function formatDigest(algorithm: string, value: Uint8Array): string {
  return `${algorithm}:${Buffer.from(value).toString('base64')}`
}

/** The algorithm of a digest in that form. */
export function algorithmOf(digest: string): DigestAlgorithm {
  return digest.slice(0, digest.indexOf(':')) as DigestAlgorithm
}
