import { SOURCE_CHECKSUMS, type SourceChecksumAlgorithm } from '../model/manifest.js'
import type { ObjectFacts } from '../proof/object-facts.js'
import type { ManifestEntry } from './manifest-entry.js'

/**
 * The facts about an object's checksums that a node with the object can give. For an object in one part it knows a
 * digest of the whole, so a copy of the copy is verified at least as well as the copy was; for one in parts it passes
 * on what the source said.
 */
export function factsOfEntry(entry: Pick<ManifestEntry, 'facts' | 'digest'>): ObjectFacts {
  if (entry.facts !== null) return entry.facts
  const [, algorithm, value] = /^([a-z0-9]+):(.+)$/.exec(entry.digest ?? '') ?? []
  if (value === undefined) return { checksums: [], uploadPartBytes: null, isEtagMd5: false }
  if (isSourceChecksum(algorithm)) {
    return { checksums: [{ algorithm, value, isComposite: false }], uploadPartBytes: null, isEtagMd5: false }
  }
  return { checksums: [], uploadPartBytes: null, isEtagMd5: algorithm === 'md5' }
}

function isSourceChecksum(algorithm: string | undefined): algorithm is SourceChecksumAlgorithm {
  return (SOURCE_CHECKSUMS as readonly (string | undefined)[]).includes(algorithm)
}
