import type { SourceChecksumAlgorithm } from '../model/manifest.js'

/** What a source says about an object when it is read. */
export interface ObjectFacts {
  /** Checksums of the whole object, whatever range was asked for. */
  readonly checksums: readonly SourceChecksum[]
  /** Size of the parts the object was uploaded in, bytes, when the source tells. */
  readonly uploadPartBytes: number | null
  /** Whether `uploadPartBytes` is only what usual tools would have used: it can prove, but not disprove. */
  readonly isPartSizeGuessed?: boolean
  /** Whether the source answers a request for a range with the whole object: then parts are of no use. */
  readonly ignoresRanges?: boolean
  /** Whether an etag that looks like an MD5 is one; with KMS encryption it is not. */
  readonly isEtagMd5: boolean
}

/** A checksum of a whole object. Composite = the checksum of its upload parts' checksums. */
export interface SourceChecksum {
  readonly algorithm: SourceChecksumAlgorithm
  readonly value: string
  readonly isComposite: boolean
}
