import type { ManifestObject, ObjectChecksum, VerifiedBy } from '../model/manifest.js'

/** A row of `object` in manifest.db. */
export interface ObjectRow {
  readonly id: number
  readonly key: string
  readonly size_bytes: number
  readonly etag: string | null
  readonly version_id: string | null
  readonly checksum_algorithm: ObjectChecksum['algorithm'] | null
  readonly checksum_value: string | null
  readonly modified_at_ms: number
  /** Size of its parts, bytes; null until planned, and for an object in one part. */
  readonly part_bytes: number | null
  /** ObjectFacts as JSON, of an object in several parts. */
  readonly facts: string | null
  readonly state: 0 | 1 | 2
  readonly verified_by: VerifiedBy | null
  /** `algorithm:base64` over the object, when it has one part. */
  readonly digest: string | null
}

/** The object that a row describes. */
export function toManifestObject(row: ObjectRow): ManifestObject {
  return {
    key: row.key,
    path: row.key, // keyToPath is the identity on the keys it accepts
    sizeBytes: row.size_bytes,
    etag: row.etag,
    versionId: row.version_id,
    checksum:
      row.checksum_algorithm !== null && row.checksum_value !== null
        ? { algorithm: row.checksum_algorithm, value: row.checksum_value }
        : null,
    modifiedAtMs: row.modified_at_ms,
  }
}
