/** Checksums that an S3 server may store with an object. */
export const SOURCE_CHECKSUMS = ['crc64nvme', 'crc32c', 'crc32', 'sha256', 'sha1'] as const
/**
 * The name of a checksum that a source may provide: an S3 server's, git's name for the content of a file (the SHA-1 of
 * `blob <size>\0` and the content; git-scm.com/book, Git Internals, Git Objects), or the MD5 from a list.
 */
export type SourceChecksumAlgorithm = (typeof SOURCE_CHECKSUMS)[number] | 'git-sha1' | 'md5'

/**
 * How an object's bytes were verified against the source: by its checksum or its MD5, usually the etag. `own-sha256`:
 * the source has none, so the SHA-256 of the first read counts, and every later read is compared with it. `size`:
 * nothing was read, because the object is empty.
 */
export type VerifiedBy = Exclude<SourceChecksumAlgorithm, 'md5'> | 'etag-md5' | 'own-sha256' | 'size'

/** A checksum from the source, in base64; a composite one is the checksum of the parts' checksums, `…-parts`. */
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
  /** As the source provides it, without quotes; for `file:` a digest of size and modification time. */
  readonly etag: string | null
  readonly versionId: string | null
  readonly checksum: ObjectChecksum | null
  /** Unix epoch, ms. Not part of the version: rewriting an object with the same bytes changes nothing. */
  readonly modifiedAtMs: number
}

/**
 * An object's line in the digest of a version. It contains everything that distinguishes contents; changing its format
 * changes every version, so a test pins it.
 */
export function formatManifestLine(object: ManifestObject): string {
  const { key, sizeBytes, etag, versionId, checksum } = object
  return `${JSON.stringify([key, sizeBytes, etag, versionId, checksum && `${checksum.algorithm}:${checksum.value}`])}\n`
}
