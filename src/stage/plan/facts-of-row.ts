import { SOURCE_CHECKSUMS, type SourceChecksumAlgorithm } from '../../model/manifest.js'
import type { ObjectFacts } from './object-facts.js'

/**
 * What a node that has an object can tell about its checksums. Of an object in one part it knows a digest of the
 * whole, so a copy of the copy is proven at least as well as the copy was; of one in parts, what the source said.
 */
export function factsOfRow(row: {
  /** ObjectFacts as JSON, of an object in several parts. */
  readonly facts: string | null
  /** `algorithm:base64` over an object in one part. */
  readonly digest: string | null
}): ObjectFacts {
  if (row.facts !== null) return JSON.parse(row.facts) as ObjectFacts
  const [, algorithm, value] = /^([a-z0-9]+):(.+)$/.exec(row.digest ?? '') ?? []
  if (value === undefined) return { checksums: [], uploadPartBytes: null, isEtagMd5: false }
  if (isSourceChecksum(algorithm)) {
    return {
      checksums: [{ algorithm, value, isComposite: false }],
      uploadPartBytes: null,
      isEtagMd5: false,
    }
  }
  return { checksums: [], uploadPartBytes: null, isEtagMd5: algorithm === 'md5' }
}

function isSourceChecksum(algorithm: string | undefined): algorithm is SourceChecksumAlgorithm {
  return (SOURCE_CHECKSUMS as readonly (string | undefined)[]).includes(algorithm)
}
