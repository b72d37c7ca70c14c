import { DscError } from '../failure/dsc-error.js'
import type { ManifestObject, ObjectChecksum, VerifiedBy } from '../model/manifest.js'
import type { ObjectFacts } from '../proof/object-facts.js'
import { keyToPath } from './key-to-path.js'

/**
 * Whether an object is still to be fetched, is written and verified, or belongs to another stripe and is never stored
 * here.
 */
type ObjectState = 'missing' | 'present' | 'elsewhere'

/** The codes for states in the manifest's table. */
export const STATE_CODES = { missing: 0, present: 1, elsewhere: 2 } as const satisfies Record<
  ObjectState,
  number
>
const STATES: readonly ObjectState[] = ['missing', 'present', 'elsewhere']

/** An object of a manifest, and the state of its bytes in this copy. */
export interface ManifestEntry extends ManifestObject {
  readonly id: number
  readonly state: ObjectState
  /** Size of its parts, bytes; null until planned, and for an object in one part. */
  readonly partBytes: number | null
  /** The source's facts about an object in several parts. */
  readonly facts: ObjectFacts | null
  readonly verifiedBy: VerifiedBy | null
  /** `algorithm:base64` over the object, when it has one part. */
  readonly digest: string | null
}

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
  readonly part_bytes: number | null
  readonly facts: string | null
  readonly state: 0 | 1 | 2
  readonly verified_by: VerifiedBy | null
  readonly digest: string | null
}

/**
 * The columns of a row that tell an object's contents apart: no more, because a refresh reads them for every object.
 */
export type IdentityRow = Pick<
  ObjectRow,
  'id' | 'key' | 'size_bytes' | 'etag' | 'version_id' | 'checksum_algorithm' | 'checksum_value'
>

/**
 * Builds the entry of a row. Throws COPY_DAMAGED for a key that cannot be a path: listing refuses such keys, so the
 * file has been changed since.
 */
export function toEntry(row: ObjectRow): ManifestEntry {
  const { problem } = keyToPath(row.key)
  if (problem !== null)
    throw new DscError('COPY_DAMAGED', `a key of the manifest ${problem}: ${JSON.stringify(row.key)}`, {
      hint: 'evict the copy and prepare it again',
    })
  return toUncheckedEntry(row)
}

/** Builds an entry of a manifest from which no files are made; accepts any key. */
export function toUncheckedEntry(row: ObjectRow): ManifestEntry {
  return {
    id: row.id,
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
    state: STATES[row.state]!,
    partBytes: row.part_bytes,
    facts: row.facts === null ? null : (JSON.parse(row.facts) as ObjectFacts),
    verifiedBy: row.verified_by,
    digest: row.digest,
  }
}

/** Selections of objects: `kept` are all but those of other stripes, `begun` those with verified bytes. */
export type Selection = 'all' | 'missing' | 'present' | 'kept' | 'begun'

/** The condition of SQL that chooses them among `object`. */
export const WHERE: Readonly<Record<Selection, string>> = {
  all: 'true',
  missing: `state = ${STATE_CODES.missing}`,
  present: `state = ${STATE_CODES.present}`,
  kept: `state <> ${STATE_CODES.elsewhere}`,
  begun: `(state = ${STATE_CODES.present} OR part_bytes IS NOT NULL)`,
}
