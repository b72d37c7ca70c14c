/** A named source of training data and which of its objects to take. */
export interface Dataset {
  readonly name: string
  /** `s3://bucket/prefix/` or `file:///folder/`. */
  readonly source: string
  /** S3 endpoint where it is not AWS, for example `http://127.0.0.1:9000`. */
  readonly endpoint?: string
  readonly region?: string
  /** Whether the bucket stands in the path of URLs instead of in the host name. */
  readonly pathStyle?: boolean
  /** Whether requests go unsigned. */
  readonly anonymous?: boolean
  readonly requesterPays?: boolean
  /** Profile of the AWS configuration files. */
  readonly profile?: string
  /** Globs over keys; none means every object. */
  readonly include: readonly string[]
  /** Globs over keys; these win over `include`. */
  readonly exclude: readonly string[]
}

/** Checks the name of a dataset. Throws a RangeError that says what was expected and found. */
export function parseDatasetName(raw: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(raw)) return raw
  throw new RangeError(
    `expected a dataset name of letters, digits, '.', '_' and '-', found ${JSON.stringify(raw)}`,
  )
}

/** A source taken apart. */
export type SourceUrl =
  | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string }
  | { readonly kind: 'file'; readonly path: string }

/** Takes a source apart. Throws a RangeError that says what was expected and found. */
export function parseSourceUrl(raw: string): SourceUrl {
  const s3 = /^s3:\/\/([a-z0-9][a-z0-9._-]+)(?:\/(.*))?$/.exec(raw)
  if (s3) return { kind: 's3', bucket: s3[1]!, prefix: s3[2] ?? '' }
  const file = /^file:\/\/(\/.*)$/.exec(raw)
  if (file) return { kind: 'file', path: file[1]! }
  throw new RangeError(
    `expected a source such as s3://bucket/prefix/ or file:///folder/, found ${JSON.stringify(raw)}`,
  )
}
