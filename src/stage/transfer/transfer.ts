import type { VerifiedBy } from '../../model/manifest.js'
import { createDigest, type Digest } from '../digest/digest.js'
import type { ObjectFacts } from '../plan/object-facts.js'
import type { Part } from '../plan/plan-parts.js'
import { nameProof, type Proof, type ProofAlgorithm, planProof } from '../plan/plan-proof.js'
import type { Fetcher } from '../source.js'
import { SourceFailure } from '../source-failure.js'
import { FileSink } from './file-sink.js'

/** An object as a transfer needs it: plain data, so that it can go to a worker. */
export interface TransferObject {
  readonly key: string
  readonly etag: string | null
  readonly versionId: string | null
  readonly sizeBytes: number
  /** Absolute path of the file. */
  readonly path: string
}

interface TransferLimits {
  readonly stallTimeoutMs: number
  readonly signal: AbortSignal
  /** Called with the number of bytes of each chunk; returns how long to wait before more, ms. */
  readonly onBytes?: (bytes: number) => number
}

/** A digest in the manifest's form: `algorithm:base64`. */
export function formatDigest(algorithm: string, value: Uint8Array): string {
  return `${algorithm}:${Buffer.from(value).toString('base64')}`
}

/** Digests at least this strong are kept as our own content digest when the source's proof computes them anyway. */
function isStrong(algorithm: ProofAlgorithm | undefined): boolean {
  return algorithm === 'sha256' || algorithm === 'md5' || algorithm === 'crc64nvme' || algorithm === 'sha1'
}

/**
 * Makes one attempt to fetch an object in one piece, proving it while it arrives. Resolves with its content digest
 * and what proved it; rejects with CHECKSUM_MISMATCH, transient, when the bytes are not the source's.
 */
export async function transferWhole(
  fetcher: Fetcher,
  object: TransferObject,
  limits: TransferLimits,
): Promise<{ digest: string; verifiedBy: VerifiedBy; facts: ObjectFacts | undefined }> {
  const sink = new FileSink(object.path, { offset: 0, isWhole: true })
  let facts: ObjectFacts | undefined
  let proof = { kind: 'size' } as Proof
  let proofDigest: Digest | undefined
  let contentDigest: Digest | undefined
  const begin = () => {
    if (contentDigest) return
    if (facts) proof = planProof({ ...object, partBytes: object.sizeBytes, facts })
    const algorithm = proof.kind === 'size' ? undefined : proof.algorithm
    if (algorithm) proofDigest = createDigest(algorithm)
    contentDigest = algorithm && isStrong(algorithm) ? proofDigest : createDigest('sha256')
  }
  try {
    if (object.sizeBytes > 0)
      await fetcher.fetch({
        ...object,
        offset: 0,
        length: object.sizeBytes,
        ...limits,
        onFacts: (found) => {
          facts = found
        },
        sink: (chunk) => {
          begin()
          contentDigest!.update(chunk)
          if (proofDigest !== contentDigest) proofDigest?.update(chunk)
          sink.write(chunk)
          return limits.onBytes?.(chunk.length) ?? 0
        },
      })
    begin()
    const content = contentDigest!.finish()
    if (proof.kind !== 'size') {
      const found = proofDigest === contentDigest ? content : proofDigest!.finish()
      const isNested = proof.kind === 'digest-of-digests' // uploaded in parts, but in one
      requireDigest(object.key, proof, isNested ? digestOf(proof.algorithm, found) : found)
    }
    sink.finish()
    return { digest: formatDigest(contentDigest!.algorithm, content), verifiedBy: nameProof(proof), facts }
  } catch (error) {
    sink.discard()
    throw error
  }
}

/** Makes one attempt to fetch a part; its digests go to the manifest and prove the whole once all are there. */
export async function transferPart(
  fetcher: Fetcher,
  object: TransferObject,
  part: Part,
  limits: TransferLimits & { readonly proofAlgorithm: ProofAlgorithm | undefined },
): Promise<{ digest: string; proof: string | null }> {
  const sink = new FileSink(object.path, { offset: part.offset, isWhole: false })
  const { proofAlgorithm } = limits
  const proofDigest = proofAlgorithm && createDigest(proofAlgorithm)
  const contentDigest = proofDigest && isStrong(proofAlgorithm) ? proofDigest : createDigest('sha256')
  try {
    await fetcher.fetch({
      ...object,
      offset: part.offset,
      length: part.length,
      ...limits,
      sink: (chunk) => {
        contentDigest.update(chunk)
        if (proofDigest !== contentDigest) proofDigest?.update(chunk)
        sink.write(chunk)
        return limits.onBytes?.(chunk.length) ?? 0
      },
    })
    sink.finish()
    return {
      digest: formatDigest(contentDigest.algorithm, contentDigest.finish()),
      proof:
        proofDigest && proofDigest !== contentDigest
          ? formatDigest(proofDigest.algorithm, proofDigest.finish())
          : null,
    }
  } catch (error) {
    sink.discard()
    throw error
  }
}

function digestOf(algorithm: ProofAlgorithm, bytes: Uint8Array): Buffer {
  const digest = createDigest(algorithm)
  digest.update(bytes)
  return digest.finish()
}

/** Throws CHECKSUM_MISMATCH, transient, unless `found` is what the proof expects. */
export function requireDigest(key: string, proof: Exclude<Proof, { kind: 'size' }>, found: Uint8Array): void {
  const hexadecimal = Buffer.from(found).toString('hex')
  const { expected } = proof
  if (hexadecimal === expected) return
  throw new SourceFailure(
    'CHECKSUM_MISMATCH',
    `${JSON.stringify(key)}: expected ${proof.algorithm} ${expected}, found ${hexadecimal} in the bytes received`,
    {
      isTransient: true,
      hint: 'bytes change on the way: check proxies and memory of this node, then try again',
    },
  )
}
