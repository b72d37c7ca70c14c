import { createHash, type Hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { type Crc64, updateCrc32c, updateCrc64nvme } from './crc.js'

export type CrcAlgorithm = 'crc32' | 'crc32c' | 'crc64nvme'
export type DigestAlgorithm = CrcAlgorithm | 'sha256' | 'sha1' | 'md5'

/** Takes bytes in order and ends in their digest. */
export interface Digest {
  readonly algorithm: DigestAlgorithm
  update(chunk: Uint8Array): void
  /** Big-endian, as S3 writes it before base64. Call once. */
  finish(): Buffer
}

/** Whether digests of consecutive parts combine to that of the whole. */
export function isCrc(algorithm: DigestAlgorithm): algorithm is CrcAlgorithm {
  return algorithm.startsWith('crc')
}

/** Starts a digest. */
export function createDigest(algorithm: DigestAlgorithm): Digest {
  switch (algorithm) {
    case 'crc32':
      return createNumberDigest(algorithm, crc32)
    case 'crc32c':
      return createNumberDigest(algorithm, updateCrc32c)
    case 'crc64nvme':
      return createCrc64Digest()
    default:
      return createHashDigest(algorithm, createHash(algorithm))
  }
}

function createHashDigest(algorithm: DigestAlgorithm, hash: Hash): Digest {
  return { algorithm, update: (chunk) => void hash.update(chunk), finish: () => hash.digest() }
}

function createNumberDigest(
  algorithm: DigestAlgorithm,
  step: (chunk: Uint8Array, previous: number) => number,
): Digest {
  let value = 0
  return {
    algorithm,
    update(chunk) {
      value = step(chunk, value)
    },
    finish() {
      const bytes = Buffer.alloc(4)
      bytes.writeUInt32BE(value)
      return bytes
    },
  }
}

function createCrc64Digest(): Digest {
  const state: Crc64 = { low: 0, high: 0 }
  return {
    algorithm: 'crc64nvme',
    update: (chunk) => updateCrc64nvme(chunk, state),
    finish() {
      const bytes = Buffer.alloc(8)
      bytes.writeUInt32BE(state.high, 0)
      bytes.writeUInt32BE(state.low, 4)
      return bytes
    },
  }
}
