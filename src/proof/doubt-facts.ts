import type { ObjectChecksum } from '../model/manifest.js'
import type { ObjectFacts } from './object-facts.js'

/** The listed facts of an object, and how it is read. */
export interface ListedProof {
  /** URL of the source. */
  readonly source: string
  readonly checksum?: ObjectChecksum | null | undefined
}

/** Whether the source itself has something to verify an object with, so that no other node's word is needed. */
export function hasSourceProof({ source, checksum }: ListedProof): boolean {
  return (checksum ?? null) !== null || isS3(source)
}

/**
 * Returns the facts of another node that can be believed. A node that errs or lies would choose the checksum that its bytes
 * match, so a listed checksum replaces what it says, and an etag of S3 is taken for an MD5 until the store says
 * otherwise. Where the source has neither, the node's word is all there is.
 */
export function doubtFacts(told: ObjectFacts, listed: ListedProof): ObjectFacts {
  const { checksum } = listed
  if (checksum) {
    const isComposite = /-\d+$/.test(checksum.value)
    return { ...told, checksums: [{ ...checksum, isComposite }], isEtagMd5: false, isHearsay: true }
  }
  return isS3(listed.source) ? { ...told, checksums: [], isEtagMd5: true, isHearsay: true } : told
}

/** Elsewhere an etag is an opaque word. */
function isS3(source: string): boolean {
  return source.startsWith('s3:')
}
