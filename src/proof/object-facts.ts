import type { SourceChecksumAlgorithm } from '../model/manifest.js'

/** A source's facts about an object, as sent when it is read. */
export interface ObjectFacts {
  /** Checksums of the whole object, even if only a range was requested. */
  readonly checksums: readonly SourceChecksum[]
  /** Size of the object's upload parts, bytes, if the source tells. */
  readonly uploadPartBytes: number | null
  /**
   * Whether `uploadPartBytes` is only what common tools would have used: a match verifies, but a mismatch means
   * nothing.
   */
  readonly isPartSizeGuessed?: boolean
  /** Whether the source answers a request for a range with the whole object: then parts are of no use. */
  readonly ignoresRanges?: boolean
  /** Whether an etag that looks like an MD5 is one; with KMS encryption it is not. */
  readonly isEtagMd5: boolean
  /** Whether another node told them: the source may know more, and that etags are no MD5. */
  readonly isHearsay?: boolean
}

/** A checksum of a whole object. Composite = the checksum of its upload parts' checksums. */
export interface SourceChecksum {
  readonly algorithm: SourceChecksumAlgorithm
  readonly value: string
  readonly isComposite: boolean
}
