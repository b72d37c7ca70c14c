/** A named source of training data with filters. Optional settings are absent, never empty. */
export interface Dataset {
  readonly name: string
  /** `s3://bucket/prefix/` or `file:///directory/`. */
  readonly source: string
  /** URL of an S3 server other than AWS. */
  readonly endpoint?: string
  readonly region?: string
  /** Addresses the bucket in the path instead of the host name. */
  readonly pathStyle?: boolean
  /** Sends unsigned requests. */
  readonly anonymous?: boolean
  /** Accepts that the caller's account pays for requests and traffic. */
  readonly requesterPays?: boolean
  /** Profile of the AWS configuration files. */
  readonly profile?: string
  /** Globs relative to the prefix; an object is taken when one matches. Empty = every object. */
  readonly include: readonly string[]
  /** Globs relative to the prefix, stronger than `include`. A pattern equal to a key always matches it. */
  readonly exclude: readonly string[]
}

/** Whether two definitions ask for the same objects; how their bytes are reached does not matter. */
export function isSameDefinition(one: Dataset, other: Dataset): boolean {
  const content = ({ source, include, exclude }: Dataset) => JSON.stringify([source, include, exclude])
  return content(one) === content(other)
}

/** The schemes that sources have; each has a folder in `cache/sources`. */
export const SOURCE_SCHEMES = ['s3', 'file'] as const

/** One of the schemes that sources have. */
export type SourceScheme = (typeof SOURCE_SCHEMES)[number]

/** A source URL taken apart. An S3 prefix is empty or ends in `/`. */
type SourceUrl =
  | { readonly scheme: 's3'; readonly bucket: string; readonly prefix: string }
  | { readonly scheme: 'file'; readonly directory: string }

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/

/**
 * Checks a dataset's name: 1 to 100 of `A-Z a-z 0-9 . _ -`, a letter or digit first.
 * Throws a RangeError that says what was expected and found.
 */
export function parseDatasetName(raw: string): string {
  if (NAME.test(raw)) return raw
  throw new RangeError(
    `expected a dataset name of up to 100 letters, digits, '.', '_' and '-', found ${JSON.stringify(raw.slice(0, 200))}`,
  )
}

/**
 * Takes `s3://bucket/prefix/` or `file:///directory/` apart. A prefix names a folder: `/` is added when missing.
 * Throws a RangeError that says what was expected and found.
 */
export function parseSourceUrl(raw: string): SourceUrl {
  const match = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/s.exec(raw)
  if (!match) throw unusable(raw, 'it has no scheme')
  const [, scheme = '', rest = ''] = match
  const known = SOURCE_SCHEMES.find((name) => name === scheme.toLowerCase())
  if (known === undefined) throw unusable(raw, `the scheme is ${scheme}`)
  return PARSERS[known](raw, rest)
}

function parseS3(raw: string, rest: string): SourceUrl {
  const slash = rest.indexOf('/')
  const bucket = slash === -1 ? rest : rest.slice(0, slash)
  const prefix = slash === -1 ? '' : rest.slice(slash + 1)
  if (bucket.includes('@')) throw unusable(raw, 'it has credentials before "@"')
  if (!BUCKET.test(bucket) && !bucket.startsWith('arn:')) throw unusable(raw, 'that is no bucket name')
  return { scheme: 's3', bucket, prefix: prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/` }
}

function parseFile(raw: string, rest: string): SourceUrl {
  if (!rest.startsWith('/')) throw unusable(raw, 'the directory is not absolute')
  let directory: string
  try {
    directory = decodeURIComponent(rest)
  } catch {
    throw unusable(raw, 'its percent escapes are broken')
  }
  if (directory.includes('\0')) throw unusable(raw, 'it contains NUL')
  if (directory.split('/').some((segment) => segment === '..' || segment === '.'))
    throw unusable(raw, 'it has "." or ".." segments')
  return { scheme: 'file', directory: directory.endsWith('/') ? directory : `${directory}/` }
}

const PARSERS: Readonly<Record<SourceScheme, (raw: string, rest: string) => SourceUrl>> = {
  s3: parseS3,
  file: parseFile,
}

/**
 * A readable name for a source nobody named: the last parts of its path and 8 hexadecimal digits of its hash.
 * The same source gives the same name on every machine.
 */
export function deriveDatasetName(source: string): string {
  const url = parseSourceUrl(source)
  const canonical = url.scheme === 's3' ? `s3://${url.bucket}/${url.prefix}` : `file://${url.directory}`
  const words = (url.scheme === 's3' ? `${url.bucket}/${url.prefix}` : url.directory)
    .split('/')
    .filter(Boolean)
  const slug = words
    .slice(-3)
    .join('-')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '')
    .slice(0, 80)
  return parseDatasetName(`${slug === '' ? 'dataset' : slug}-${fnv1a(canonical)}`)
}

function fnv1a(text: string): string {
  let hash = 0xcbf29ce484222325n
  for (const byte of new TextEncoder().encode(text))
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return (hash >> 32n).toString(16).padStart(8, '0')
}

function unusable(raw: string, problem: string): RangeError {
  // What stands before "@" or behind "?" may be a secret.
  const shown = raw
    .replace(/^([a-z0-9+.-]+:\/\/)[^/@]*@/i, '$1')
    .replace(/[?#].*$/s, '')
    .slice(0, 200)
  return new RangeError(
    `expected a source such as s3://bucket/prefix/ or file:///folder/, found ${JSON.stringify(shown)}: ${problem}`,
  )
}
