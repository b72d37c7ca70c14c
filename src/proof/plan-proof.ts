import type { SourceChecksumAlgorithm, VerifiedBy } from '../model/manifest.js'
import type { ObjectFacts, SourceChecksum } from './object-facts.js'

/**
 * How to verify that an object's bytes are the source's.
 * - `combine`: CRCs of the parts combine to the whole's; one part is its own whole.
 * - `digest-of-digests`: the checksum is that of the upload parts' digests, and our parts are those parts.
 * - `whole`: a digest that needs the bytes in order: of one part while it arrives, of several by reading again.
 * - `size`: the source offers nothing: the digest of the first read counts from then on.
 */
export type Proof =
  | {
      readonly kind: 'combine'
      readonly algorithm: 'crc32' | 'crc32c' | 'crc64nvme'
      readonly expected: string
    }
  | {
      readonly kind: 'digest-of-digests'
      readonly algorithm: ProofAlgorithm
      readonly expected: string
      /** False when the upload parts are guessed: a mismatch may mean a wrong guess. */
      readonly isCertain: boolean
      readonly isOfEtag?: boolean
    }
  | {
      readonly kind: 'whole'
      readonly algorithm: ProofAlgorithm
      readonly expected: string
      /** The expected digest is the etag, which may look like an MD5 and be none. A listed checksum is what it says. */
      readonly isOfEtag?: boolean
    }
  | { readonly kind: 'size' }

/** Checksums that can verify that the bytes read are the source's. */
export type ProofAlgorithm = SourceChecksumAlgorithm

/** The first available checksum is used; all verify the same, the earlier ones cost less CPU. */
const PREFERENCE = ['crc32', 'crc64nvme', 'crc32c', 'sha256', 'sha1', 'git-sha1', 'md5'] as const

/** Chooses how to verify. `partBytes` is the size of our own parts; `expected` is hexadecimal without part count. */
export function planProof(object: {
  readonly sizeBytes: number
  readonly etag: string | null
  readonly partBytes: number
  readonly facts: ObjectFacts
}): Proof {
  const { facts } = object
  const byPreference = (kind: 'composite' | 'full'): SourceChecksum | undefined =>
    PREFERENCE.map((algorithm) =>
      facts.checksums.find(
        (found) => found.algorithm === algorithm && found.isComposite === (kind === 'composite'),
      ),
    ).find((found) => found !== undefined)
  const full = byPreference('full')
  if (full) {
    const expected = base64ToHex(full.value)
    return full.algorithm.startsWith('crc')
      ? { kind: 'combine', algorithm: full.algorithm as 'crc32', expected }
      : { kind: 'whole', algorithm: full.algorithm, expected }
  }
  const arePartsTheirs = facts.uploadPartBytes !== null && facts.uploadPartBytes === object.partBytes
  const isCertain = facts.isPartSizeGuessed !== true
  const composite = byPreference('composite')
  if (composite && arePartsTheirs)
    return {
      kind: 'digest-of-digests',
      algorithm: composite.algorithm,
      expected: base64ToHex(composite.value.replace(/-\d+$/, '')),
      isCertain,
    }
  if (!facts.isEtagMd5 || object.etag === null) return { kind: 'size' }
  const [, md5, uploadParts] = /^([0-9a-f]{32})(?:-(\d+))?$/i.exec(object.etag) ?? []
  if (md5 === undefined) return { kind: 'size' }
  const ofEtag = { algorithm: 'md5', expected: md5.toLowerCase(), isOfEtag: true } as const
  if (uploadParts === undefined) return { kind: 'whole', ...ofEtag }
  if (uploadParts === '1') return { kind: 'digest-of-digests', ...ofEtag, isCertain: true }
  if (arePartsTheirs) return { kind: 'digest-of-digests', ...ofEtag, isCertain }
  return { kind: 'size' }
}

/** Whether bytes are compared with an etag, which may look like an MD5 and be none. */
export function isOfEtag(proof: Proof): boolean {
  return 'isOfEtag' in proof && proof.isOfEtag === true
}

/** The word for a way to verify in reports. */
export function nameProof(proof: Proof): VerifiedBy {
  if (proof.kind === 'size') return 'own-sha256'
  return nameChecksum(proof.algorithm)
}

/** The word in reports for verification by such a checksum. */
export function nameChecksum(algorithm: SourceChecksumAlgorithm): VerifiedBy {
  return algorithm === 'md5' ? 'etag-md5' : algorithm
}

function base64ToHex(base64: string): string {
  return Buffer.from(base64, 'base64').toString('hex')
}
