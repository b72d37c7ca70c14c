import type { Credentials } from '../own-access.js'

/** How requests reach a bucket. */
export interface S3Target {
  /** `https://host:port`. */
  readonly origin: string
  /** Path before the key, percent-encoded, ends in `/`. */
  readonly basePath: string
  readonly region: string
  /** The service named in signatures: `s3`, or `s3express` for directory buckets. */
  readonly service: string
  /** Undefined: requests go out unsigned. */
  readonly getCredentials: () => Promise<Credentials> | Credentials | undefined
}
