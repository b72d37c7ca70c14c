import { SOURCE_CHECKSUMS, type SourceChecksumAlgorithm } from '../model/manifest.js'
import type { ObjectFacts } from '../proof/object-facts.js'
import type { ManifestEntry } from './manifest-entry.js'

/**
 * What a node that has an object can tell about its checksums. Of an object in one part it knows a digest of the
 * whole, so a copy of the copy is proven at least as well as the copy was; of one in parts, what the source said.
 */
export function factsOfEntry(entry: Pick<ManifestEntry, 'facts' | 'digest'>): ObjectFacts {
  if (entry.facts !== null) return entry.facts
  const [, algorithm, value] = /^([a-z0-9]+):(.+)$/.exec(entry.digest ?? '') ?? []
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
