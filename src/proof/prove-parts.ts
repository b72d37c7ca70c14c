import { type FileHandle, open } from 'node:fs/promises'
import type { VerifiedBy } from '../model/manifest.js'
import { combineCrcs } from './combine-crc.js'
import { algorithmOf, createDigest } from './digest.js'
import { digestRange } from './digest-range.js'
import type { Part } from './plan-parts.js'
import { nameProof, type Proof, type ProofAlgorithm } from './plan-proof.js'
import { requireDigest } from './require-digest.js'

/** A finished part's digests as the manifest stores them. */
export interface FinishedPart {
  readonly digest: string
  /** A digest that helps to verify the whole; null: `digest` does. `PROVEN_ELSEWHERE`: the part needs none. */
  readonly proof: string | null
  /** Another node sent it. */
  readonly isHearsay?: boolean
}

/** Replaces a part's proof: its digest matches that of a node that has verified the whole object. */
export const PROVEN_ELSEWHERE = 'elsewhere'

/**
 * Verifies a file whose parts are all present: from the parts' digests if possible, else by reading the file once more.
 * Resolves with what verified it; rejects with CHECKSUM_MISMATCH.
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
  const algorithm = provenElsewhere(finished)
  if (algorithm !== undefined && !isOfParts(proof, algorithm))
    return isOfSource(proof, algorithm) ? nameProof(proof) : 'own-sha256'
  if (proof.kind === 'size') return nameProof(proof)
  if (proof.kind === 'whole') {
    requireDigest(key, proof, await digestFile(options.path, proof.algorithm, options.signal))
    return nameProof(proof)
  }
  const digests = await digestParts(options, proof.algorithm)
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

/** Whether the parts' digests by this algorithm suffice to verify the whole, which costs nothing. */
function isOfParts(proof: Proof, algorithm: ProofAlgorithm): boolean {
  return (proof.kind === 'combine' || proof.kind === 'digest-of-digests') && proof.algorithm === algorithm
}

/** Whether the source keeps a checksum by the algorithm of the parts' digests. */
function isOfSource(proof: Proof, algorithm: ProofAlgorithm): boolean {
  return proof.kind !== 'size' && proof.algorithm === algorithm
}

/** The algorithm of the parts' digests, if all came from nodes that had verified the whole. */
function provenElsewhere(finished: readonly FinishedPart[]): ProofAlgorithm | undefined {
  if (finished.some(({ proof }) => proof !== PROVEN_ELSEWHERE)) return undefined
  return finished[0] && (algorithmOf(finished[0].digest) as ProofAlgorithm)
}

/** The parts' digests by one algorithm; reads parts again that came from elsewhere with another one. */
async function digestParts(
  { path, parts, finished, signal }: Parameters<typeof proveParts>[0],
  algorithm: ProofAlgorithm,
): Promise<readonly Buffer[]> {
  const digests: Buffer[] = []
  let file: FileHandle | undefined
  try {
    for (const [index, part] of finished.entries()) {
      const known = part.proof === null || part.proof === PROVEN_ELSEWHERE ? part.digest : part.proof
      if (part.proof === PROVEN_ELSEWHERE && algorithmOf(known) !== algorithm) {
        file ??= await open(path, 'r')
        digests.push(await digestRange(file, parts[index]!, { algorithm, signal }))
      } else digests.push(decodeDigest(known, algorithm))
    }
  } finally {
    await file?.close()
  }
  return digests
}

async function digestFile(path: string, algorithm: Parameters<typeof createDigest>[0], signal: AbortSignal) {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    return await digestRange(file, { offset: 0, length: size }, { algorithm, signal })
  } finally {
    await file.close()
  }
}

function decodeDigest(text: string, algorithm: string): Buffer {
  const [found, value = ''] = text.split(':')
  if (found !== algorithm) throw new Error(`manifest has ${found} of a part where ${algorithm} is needed`)
  return Buffer.from(value, 'base64')
}
