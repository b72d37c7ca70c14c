import { open } from 'node:fs/promises'
import type { ManifestObject, VerifiedBy } from '../model/manifest.js'
import { formatDigest } from './digest.js'
import { digestRange } from './digest-range.js'
import type { ObjectFacts } from './object-facts.js'
import { planParts } from './plan-parts.js'
import { type Proof, planProof } from './plan-proof.js'
import { proveParts } from './prove-parts.js'

/** Verifies a file that was fetched in one piece but uploaded in several, by reading it upload part by upload part. */
export async function proveByUploadParts(
  object: Pick<ManifestObject, 'key' | 'path' | 'sizeBytes' | 'etag'>,
  facts: ObjectFacts,
  signal: AbortSignal,
): Promise<VerifiedBy> {
  const proof = planUploadProof(object, facts)
  const parts = planParts(object.sizeBytes, partBytesOf(object, facts))
  const finished: { readonly digest: string; readonly proof: null }[] = []
  if (proof.kind === 'digest-of-digests' || proof.kind === 'combine') {
    await using file = await open(object.path, 'r')
    for (const part of parts) {
      const digest = await digestRange(file, part, { algorithm: proof.algorithm, signal })
      finished.push({ digest: formatDigest(proof.algorithm, digest), proof: null })
    }
  }
  return proveParts({ key: object.key, path: object.path, proof, parts, finished, signal })
}

/** Chooses what `proveByUploadParts` compares. */
export function planUploadProof(
  object: { readonly sizeBytes: number; readonly etag: string | null },
  facts: ObjectFacts,
): Proof {
  return planProof({ ...object, partBytes: partBytesOf(object, facts), facts })
}

function partBytesOf({ sizeBytes }: { readonly sizeBytes: number }, facts: ObjectFacts): number {
  return facts.uploadPartBytes ?? sizeBytes
}
