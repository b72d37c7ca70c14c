import { createReadStream, statSync } from 'node:fs'
import type { VerifiedBy } from '../../model/manifest.js'
import { combineCrcs } from './combine-crc.js'
import { createDigest } from './digest.js'
import type { Part } from './plan-parts.js'
import { nameProof, type Proof } from './plan-proof.js'
import { requireDigest } from './require-digest.js'

/** A finished part's digests as the manifest keeps them. */
export interface FinishedPart {
  readonly digest: string
  readonly proof: string | null
}

/**
 * Proves a file whose parts are all there: from the parts' digests where that is possible, else by reading the
 * file once more. Resolves with what proved it; rejects with CHECKSUM_MISMATCH.
 */
export async function proveParts(options: {
  readonly key: string
  readonly path: string
  readonly proof: Proof
  readonly parts: readonly Part[]
  readonly finished: readonly FinishedPart[]
  readonly signal: AbortSignal
}): Promise<VerifiedBy> {
  const { key, proof, parts, finished } = options
  if (proof.kind === 'size') return nameProof(proof)
  if (proof.kind === 'whole') {
    requireDigest(key, proof, await digestFile(options.path, proof.algorithm, options.signal))
    return nameProof(proof)
  }
  const digests = finished.map((part) => decodeDigest(part.proof ?? part.digest, proof.algorithm))
  if (proof.kind === 'combine') {
    const crcs = parts.map((part, index) => ({ crc: digests[index]!, length: part.length }))
    requireDigest(key, proof, combineCrcs(proof.algorithm, crcs))
    return nameProof(proof)
  }
  const digest = createDigest(proof.algorithm)
  for (const bytes of digests) digest.update(bytes)
  const found = digest.finish()
  if (!proof.isCertain && found.toString('hex') !== proof.expected) return 'own-sha256'
  requireDigest(key, proof, found)
  return nameProof(proof)
}

async function digestFile(path: string, algorithm: Parameters<typeof createDigest>[0], signal: AbortSignal) {
  const digest = createDigest(algorithm, statSync(path).size)
  const stream = createReadStream(path, { highWaterMark: 1024 * 1024, signal })
  for await (const chunk of stream) digest.update(chunk as Buffer)
  return digest.finish()
}

function decodeDigest(text: string, algorithm: string): Buffer {
  const [found, value = ''] = text.split(':')
  if (found !== algorithm) throw new Error(`manifest has ${found} of a part where ${algorithm} is needed`)
  return Buffer.from(value, 'base64')
}
