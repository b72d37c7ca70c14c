import type { VerifiedBy } from '../../../model/manifest.js'
import type { Urgency } from '../../../model/urgency.js'
import { algorithmOf, createDigest, type DigestAlgorithm, formatDigest } from '../../../proof/digest.js'
import type { ObjectFacts } from '../../../proof/object-facts.js'
import { isOfEtag, nameProof, type Proof, type ProofAlgorithm, planProof } from '../../../proof/plan-proof.js'
import { type FinishedPart, PROVEN_ELSEWHERE } from '../../../proof/prove-parts.js'
import { requireDigest } from '../../../proof/require-digest.js'
import type { GivenDigest } from '../../../sources/source.js'
import {
  ArrivingRange,
  type AttemptLimits,
  type TransferObject,
  type TransferTools,
} from './arriving-range.js'
import type { EtagJudge } from './etag-judge.js'
import type { TransferTask } from './transfer-task.js'

/** Whether the digest is strong enough to keep as our own content digest when verification computes it anyway. */
function isStrong(algorithm: DigestAlgorithm | undefined): algorithm is ProofAlgorithm {
  return algorithm === 'sha256' || algorithm === 'md5' || algorithm === 'crc64nvme' || algorithm === 'sha1'
}

/** An object that is fetched in one piece and verified as it arrives. */
export class WholeTransfer {
  readonly #object: TransferObject
  readonly #range: ArrivingRange
  readonly #judge: EtagJudge | undefined
  #proof = { kind: 'size' } as Proof
  #content: DigestAlgorithm = 'sha256'

  constructor(
    tools: TransferTools,
    {
      object,
      urgency,
      isRepeated,
      judge,
    }: {
      readonly object: TransferObject
      readonly urgency: Urgency
      /** The object was fetched before and what others sent was not the source's: only the source is asked. */
      readonly isRepeated?: boolean
      /** Absent: every etag that looks like an MD5 counts as one. */
      readonly judge?: EtagJudge
    },
  ) {
    this.#judge = judge
    this.#object = object
    this.#range = new ArrivingRange({
      tools,
      object,
      range: { offset: 0, length: object.sizeBytes },
      asks: { needsDigest: true, isRepeated: isRepeated === true, urgency },
      chooseDigests: () => this.#chooseDigests(),
    })
  }

  /** Bytes of an earlier run that count. */
  get leftBytes(): number {
    return this.#range.leftBytes
  }

  /**
   * Begins after `bytes` that an earlier run left in the file, unless they could be another node's and nothing would
   * reveal that. Call before the first attempt.
   */
  goOn(bytes: number, facts: ObjectFacts): void {
    const { sizeBytes } = this.#object
    const isUnproven = planProof({ ...this.#object, partBytes: sizeBytes, facts }).kind === 'size'
    if (!(isUnproven && facts.isHearsay)) this.#range.goOn(bytes, facts)
  }

  /**
   * Makes one attempt. Resolves with the object's content digest and how it was verified; rejects with
   * CHECKSUM_MISMATCH, transient, if the bytes do not match the source. `isHearsay`: another node sent them, and
   * nothing of the source's has verified them yet.
   */
  attempt(limits: AttemptLimits): Promise<{ digest: string; verifiedBy: VerifiedBy; isHearsay?: boolean }> {
    return this.#range.attempt(limits, (digests) => {
      const { key, sizeBytes } = this.#object
      const proof = this.#proof
      const digest = formatDigest(this.#content, digests.get(this.#content)!)
      const isHearsay = this.#range.facts?.isHearsay === true
      if (proof.kind === 'size')
        return { digest, verifiedBy: sizeBytes === 0 ? 'size' : nameProof(proof), isHearsay }
      const found = digests.get(proof.algorithm)!
      const isNested = proof.kind === 'digest-of-digests' // uploaded by a multipart upload of one part
      const judge = isOfEtag(proof) ? this.#judge : undefined
      try {
        requireDigest(key, proof, isNested ? digestOf(proof.algorithm, found) : found)
        judge?.proven()
      } catch (error) {
        // The etag may be no MD5: only the source can tell.
        if (isHearsay && judge) return { digest, verifiedBy: 'own-sha256', isHearsay }
        if (!judge?.isNone(key, Buffer.from(found).toString('hex'))) throw error
        return { digest, verifiedBy: 'own-sha256' }
      }
      return { digest, verifiedBy: sizeBytes === 0 ? 'size' : nameProof(proof) }
    })
  }

  leave(): void {
    this.#range.leave()
  }

  #chooseDigests(): readonly DigestAlgorithm[] {
    const { facts } = this.#range
    const { sizeBytes } = this.#object
    this.#proof = facts ? planProof({ ...this.#object, partBytes: sizeBytes, facts }) : { kind: 'size' }
    const algorithm = this.#proof.kind === 'size' ? undefined : this.#proof.algorithm
    this.#content = isStrong(algorithm) ? algorithm : 'sha256'
    return algorithm ? [this.#content, algorithm] : [this.#content]
  }
}

/** A part of an object; its digests go to the manifest and verify the whole once all parts are there. */
export class PartTransfer {
  readonly #range: ArrivingRange
  readonly #content: DigestAlgorithm
  readonly #proof: ProofAlgorithm | undefined

  constructor(
    options: Omit<Extract<TransferTask, { kind: 'part' }>, 'kind'> & { readonly tools: TransferTools },
  ) {
    const { part, proofAlgorithm, needsDigest, isRepeated, urgency } = options
    const { content, proof } = planPartDigests(proofAlgorithm)
    this.#content = content
    this.#proof = proof
    const chosen = proof ? [content, proof] : [content]
    this.#range = new ArrivingRange({
      ...options,
      asks: { needsDigest, isRepeated, urgency },
      range: part,
      chooseDigests: (given) => (isProof(given) ? [] : chosen),
    })
  }

  /** Makes one attempt. */
  attempt(limits: AttemptLimits): Promise<FinishedPart> {
    return this.#range.attempt(limits, (digests, given) =>
      isProof(given)
        ? { digest: given.digest, proof: PROVEN_ELSEWHERE }
        : {
            digest: formatDigest(this.#content, digests.get(this.#content)!),
            proof: this.#proof ? formatDigest(this.#proof, digests.get(this.#proof)!) : null,
            ...(given ? { isHearsay: true } : {}),
          },
    )
  }

  leave(): void {
    this.#range.leave()
  }
}

/** Whether the stated digest alone verifies the bytes. */
function isProof(given: GivenDigest | undefined): given is GivenDigest {
  return given?.isProven === true && isStrong(algorithmOf(given.digest))
}

/** A range of a part; the part is verified once it is complete. */
export class RangeTransfer {
  readonly #range: ArrivingRange

  constructor(
    options: Omit<Extract<TransferTask, { kind: 'range' }>, 'kind'> & { readonly tools: TransferTools },
  ) {
    const { part, needsDigest, isRepeated, urgency } = options
    const asks = { needsDigest, isRepeated, urgency, partOffset: part.offset }
    this.#range = new ArrivingRange({ ...options, asks, chooseDigests: () => ['crc32'] })
  }

  /** Makes one attempt. Resolves with the CRC-32 of the bytes received. */
  attempt(limits: AttemptLimits): Promise<string> {
    return this.#range.attempt(limits, (digests) => formatDigest('crc32', digests.get('crc32')!))
  }

  leave(): void {
    this.#range.leave()
  }
}

/** The digests to keep of a part: of its content and, if that is another algorithm, the one that verifies the whole. */
export function planPartDigests(proofAlgorithm: ProofAlgorithm | undefined): {
  readonly content: DigestAlgorithm
  readonly proof: ProofAlgorithm | undefined
} {
  const content = isStrong(proofAlgorithm) ? proofAlgorithm : 'sha256'
  return { content, proof: proofAlgorithm === content ? undefined : proofAlgorithm }
}

function digestOf(algorithm: ProofAlgorithm, bytes: Uint8Array): Buffer {
  const digest = createDigest(algorithm, bytes.length)
  digest.update(bytes)
  return digest.finish()
}
