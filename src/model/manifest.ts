/** Checksums an S3 server may keep beside an object. */
export const SOURCE_CHECKSUMS = ['crc64nvme', 'crc32c', 'crc32', 'sha256', 'sha1'] as const
/**
 * The name of a checksum that a source may keep: an S3 server's, the name that git gives the content of a file (the
 * SHA-1 of `blob <size>\0` and the content; git-scm.com/book, Git Internals, Git Objects), or the MD5 that a list tells.
 */
export type SourceChecksumAlgorithm = (typeof SOURCE_CHECKSUMS)[number] | 'git-sha1' | 'md5'

/**
 * How the bytes of an object were proven to be the source's: its checksum or its MD5, mostly its etag. `own-sha256`: the source has
 * none, so that the SHA-256 of what was read first counts, with which every later reading is compared. `size`: nothing
 * was read, because the object is empty.
 */
export type VerifiedBy = Exclude<SourceChecksumAlgorithm, 'md5'> | 'etag-md5' | 'own-sha256' | 'size'

/** A checksum kept by the source, in base64; a composite one is the checksum of the parts' checksums, `…-parts`. */
export interface ObjectChecksum {
  readonly algorithm: SourceChecksumAlgorithm
  readonly value: string
}

/** One object of a dataset's version. */
export interface ManifestObject {
  /** Key relative to the dataset's prefix. */
  readonly key: string
  /** Path relative to the copy's `files/`. */
  readonly path: string
  readonly sizeBytes: number
  /** As the source gives it, without quotes; for `file:` a digest of size and modification time. */
  readonly etag: string | null
  readonly versionId: string | null
  readonly checksum: ObjectChecksum | null
  /** Unix epoch, ms. No part of the version: rewriting an object with the same bytes changes nothing. */
  readonly modifiedAtMs: number
}

/**
 * The line that stands for an object in the digest of a version. Everything that tells contents apart is in it;
 * changing its format changes every version, so a test pins it.
 */
export function formatManifestLine(object: ManifestObject): string {
  const { key, sizeBytes, etag, versionId, checksum } = object
  return `${JSON.stringify([key, sizeBytes, etag, versionId, checksum && `${checksum.algorithm}:${checksum.value}`])}\n`
}
