import type { FormatName, ToldDialect } from './sample-formats.js'
import { findCanonicalSource, formatSourceUrl, parseSourceUrl } from './source-url.js'

/** A named source of training data with filters. Optional settings are absent, never empty. */
export interface Dataset {
  readonly name: string
  /** A source URL, see `source-url.ts`. */
  readonly source: string
  /** URL of an S3 server other than AWS, or of a hub other than huggingface.co. */
  readonly endpoint?: string | undefined
  readonly region?: string | undefined
  /** Addresses the bucket in the path instead of the host name. */
  readonly pathStyle?: boolean | undefined
  /** Sends requests without credentials. */
  readonly anonymous?: boolean | undefined
  /** Accepts that the caller's account pays for requests and traffic. */
  readonly requesterPays?: boolean | undefined
  /** Profile of the AWS configuration files. */
  readonly profile?: string | undefined
  /** Globs relative to the prefix; an object is included if one matches. Empty = every object. */
  readonly include: readonly string[]
  /** Globs relative to the prefix that override `include`. A pattern equal to a key always matches it. */
  readonly exclude: readonly string[]
  /** How feeds find samples in the files. Default: by the format of most bytes in a folder. */
  readonly format?: FormatName | undefined
  /** How its CSV is written, as far as the user says. */
  readonly dialect?: ToldDialect | undefined
  /** Columns that feeds read from rows, in this order. Default: all. */
  readonly columns?: readonly string[] | undefined
  /** `user:…`, `group:…`, or one `namespace:…` that may read its copies, beside admins. Default: everybody. */
  readonly readers?: readonly string[] | undefined
}

/** Which objects of a source belong to the dataset. */
export type Filters = Pick<Dataset, 'include' | 'exclude'>

/** Settings of a source that is used by its URL, without a name. */
export type SourceSettings = {
  readonly [Key in keyof Filters | 'endpoint' | 'profile' | 'anonymous']?: Dataset[Key] | undefined
}

/** Whether two URLs are spellings of one source. */
export function isSameSource(one: string, other: string): boolean {
  return one === other || (findCanonicalSource(one) ?? one) === (findCanonicalSource(other) ?? other)
}

/** Whether two definitions select the same objects; how their bytes are reached does not matter. */
export function isSameDefinition(one: Dataset, other: Dataset): boolean {
  const filters = ({ include, exclude }: Dataset) => JSON.stringify([include, exclude])
  return filters(one) === filters(other) && isSameSource(one.source, other.source)
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

/** Whether this is a valid dataset name. */
export function isDatasetName(raw: string): boolean {
  return NAME.test(raw)
}

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
 * A readable name for a source without one: the last parts of its path and 8 hexadecimal digits of its hash. The same
 * source, with the same filters and endpoint, gives the same name on every machine.
 */
export function deriveDatasetName(source: string, settings: SourceSettings = {}): string {
  const canonical = formatSourceUrl(parseSourceUrl(source))
  const { include = [], exclude = [], endpoint } = settings
  const isPlain = include.length + exclude.length === 0 && endpoint === undefined
  const definition = isPlain
    ? canonical
    : JSON.stringify([canonical, include, exclude, ...(endpoint === undefined ? [] : [endpoint])])
  const slug = canonical
    .replace(/^[a-z0-9]+:\/\//, '')
    .split('/')
    .filter(Boolean)
    .slice(-3)
    .join('-')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '')
    .slice(0, 80)
  return parseDatasetName(`${slug === '' ? 'dataset' : slug}-${fnv1a(definition)}`)
}

/** Whether the name is the one that dsc derives from a URL: nobody has given it another. */
export function isUndeclared({ name, source, include, exclude, endpoint }: Dataset): boolean {
  const owner = findOwner(name)
  const derived = [{}, { endpoint }].map((reach) => deriveDatasetName(source, { include, exclude, ...reach }))
  return derived.some((one) => (owner === undefined ? one : nameForOwner(one, owner)) === name)
}

/** The uid of a user, or a namespace of Kubernetes as `readers` and `shares` name it. */
export type Owner = number | `namespace:${string}`

/**
 * The name of a source that one owner reads with credentials of their own, from its derived name. It says nothing about
 * the source, for everybody can list the folders of a cache.
 */
export function nameForOwner(derivedName: string, owner: Owner): string {
  return `private-${fnv1a(derivedName)}.${String(owner).replace(':', '-')}`
}

/** The one owner who reads a dataset of this name, with credentials of their own; undefined: it is no such name. */
export function findOwner(name: string): Owner | undefined {
  const [, uid, namespace] =
    /^private-[0-9a-f]{8}\.(?:([0-9]{1,10})|namespace-([a-z0-9][-a-z0-9]{0,62}))$/.exec(name) ?? []
  if (namespace !== undefined) return `namespace:${namespace}`
  return uid === undefined ? undefined : Number(uid)
}

function fnv1a(text: string): string {
  let hash = 0xcbf29ce484222325n
  for (const byte of new TextEncoder().encode(text))
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return (hash >> 32n).toString(16).padStart(8, '0')
}
