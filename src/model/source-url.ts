/** The schemes of sources; each has a folder in `sources`. */
export const SOURCE_SCHEMES = ['s3', 'file', 'hf', 'oci', 'https', 'http'] as const

/** A scheme of sources. */
export type SourceScheme = (typeof SOURCE_SCHEMES)[number]

/** A repository of a Hugging Face hub, or a folder of one. */
export interface HubUrl {
  readonly scheme: 'hf'
  readonly kind: 'models' | 'datasets'
  /** `organisation/name`, or a name alone. */
  readonly repository: string
  /** Branch, tag or commit. */
  readonly revision: string
  /** Empty, or ends in `/`. */
  readonly folder: string
}

/** An artifact in a registry of the Open Container Initiative. */
export interface OciUrl {
  readonly scheme: 'oci'
  /** Host, with a port if it has one. */
  readonly registry: string
  /** Name of the repository. */
  readonly repository: string
  /** `:tag` or `@sha256:…`, with its separator. */
  readonly reference: string
}

/** A parsed source URL. An S3 prefix is empty or ends in `/`. */
type SourceUrl =
  | { readonly scheme: 's3'; readonly bucket: string; readonly prefix: string }
  | { readonly scheme: 'file'; readonly directory: string }
  | HubUrl
  | OciUrl
  | { readonly scheme: 'https' | 'http'; readonly url: string }

const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/
/** The beginning of an access point's ARN. Its name follows: a slash that does not end the bucket. */
const ACCESS_POINT = /^arn:[^/]*:(?:outpost\/[^/]+\/)?accesspoint\//
/** According to huggingface_hub's `validate_repo_id`, each part of at most 96 characters. */
const HUB_NAME = /^(?!.*(?:--|\.\.))[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?$/
/** Names and tags according to the OCI Distribution Specification 1.1, "Pulling manifests". */
const OCI_REPOSITORY = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/
const OCI_REFERENCE = /^(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127}|@sha256:[0-9a-f]{64})$/
const OCI_REGISTRY =
  /^(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+|localhost|\[[0-9a-f:.]+\])(?::\d{1,5})?$|^[A-Za-z0-9-]+:\d{1,5}$/i
const HUB_DEFAULT_REVISION = 'main'
/** Examples of sources, for messages. */
export const SOURCE_EXAMPLES = 's3://bucket/prefix/, hf://datasets/org/name or file:///folder/'

/**
 * Parses a source URL: `s3://bucket/prefix/`, `file:///directory/`,
 * `hf://[datasets/]organisation/name[@revision][/folder]`. The path inside names a folder: adds a missing final `/`.
 * Throws a RangeError with what was expected and found.
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
  const slash = rest.indexOf('/', ACCESS_POINT.exec(rest)?.[0].length ?? 0)
  const bucket = slash === -1 ? rest : rest.slice(0, slash)
  const prefix = slash === -1 ? '' : rest.slice(slash + 1)
  if (bucket.includes('@')) throw unusable(raw, 'it has credentials before "@"')
  if (!BUCKET.test(bucket) && !bucket.startsWith('arn:'))
    throw unusable(raw, 'that is not a valid bucket name')
  return { scheme: 's3', bucket, prefix: prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/` }
}

function parseFile(raw: string, rest: string): SourceUrl {
  if (!rest.startsWith('/')) throw unusable(raw, 'the directory is not absolute')
  const directory = decode(raw, rest)
  if (directory.includes('\0')) throw unusable(raw, 'it contains NUL')
  if (directory.split('/').some((segment) => segment === '..' || segment === '.'))
    throw unusable(raw, 'it has "." or ".." segments')
  return { scheme: 'file', directory: directory.endsWith('/') ? directory : `${directory}/` }
}

/** The forms of huggingface_hub's `HfFileSystem`, in which a model's name has no prefix. */
function parseHub(raw: string, rest: string): HubUrl {
  const words = rest.split('/')
  if (words[0] === 'spaces') throw unusable(raw, 'a space holds a program, no data')
  const kind = words[0] === 'datasets' || words[0] === 'models' ? (words.shift() as HubUrl['kind']) : 'models'
  const names = words[0]?.includes('@') || words.length === 1 || words[1] === '' ? 1 : 2
  const [last = '', revisionStart] = splitOnce(words[names - 1] ?? '', '@')
  const repository = [...words.slice(0, names - 1), last].join('/')
  if (!repository.split('/').every((name) => HUB_NAME.test(name)))
    throw unusable(raw, `${JSON.stringify(repository)} names no repository`)
  const inside = words.slice(names)
  // The two kinds of branches that the hub itself makes have slashes in their names, usually unescaped.
  if (revisionStart === 'refs' && /^(pr|convert)$/.test(inside[0] ?? '')) {
    const revision = `refs/${inside.splice(0, 2).join('/')}`
    return { scheme: 'hf', kind, repository, revision, folder: readFolder(raw, inside) }
  }
  const revision = decode(raw, revisionStart ?? HUB_DEFAULT_REVISION)
  if (revision === '') throw unusable(raw, 'no revision stands behind "@"')
  return { scheme: 'hf', kind, repository, revision, folder: readFolder(raw, inside) }
}

/** As `docker pull` and `oras pull` name an artifact, but never without its registry. */
function parseOci(raw: string, rest: string): OciUrl {
  const slash = rest.indexOf('/')
  const registry = slash === -1 ? rest : rest.slice(0, slash)
  const [, repository = '', reference = ''] =
    /^([^:@]*)(.*)$/s.exec(slash === -1 ? '' : rest.slice(slash + 1)) ?? []
  if (registry.includes('@')) throw unusable(raw, 'it has credentials before "@"')
  if (!OCI_REGISTRY.test(registry))
    throw unusable(raw, `${JSON.stringify(registry)} is not a registry such as ghcr.io or localhost:5000`)
  if (!OCI_REPOSITORY.test(repository))
    throw unusable(raw, `${JSON.stringify(repository)} names no repository`)
  // With both, as docker prints it, the digest decides.
  const pinned = reference.replace(/^:[^@]*(?=@)/, '') || ':latest'
  if (!OCI_REFERENCE.test(pinned))
    throw unusable(raw, `${JSON.stringify(pinned)} is neither a tag nor a sha256 digest`)
  return { scheme: 'oci', registry: registry.toLowerCase(), repository, reference: pinned }
}

/** A file, or a list of files; the text after `?` may grant access, and is never shown. */
function parseWeb(raw: string): SourceUrl {
  const url = URL.parse(raw)
  if (url === null || url.hostname === '') throw unusable(raw, 'it has no host')
  if (url.username !== '' || url.password !== '') throw unusable(raw, 'it has credentials before "@"')
  url.hash = ''
  return { scheme: url.protocol === 'https:' ? 'https' : 'http', url: url.href }
}

function readFolder(raw: string, segments: readonly string[]): string {
  const named = segments.filter((segment) => segment !== '')
  if (named.some((segment) => segment === '..' || segment === '.'))
    throw unusable(raw, 'it has "." or ".." segments')
  return named.map((segment) => `${segment}/`).join('')
}

function splitOnce(text: string, separator: string): readonly [string, string | undefined] {
  const at = text.indexOf(separator)
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

function decode(raw: string, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw unusable(raw, 'its percent escapes are broken')
  }
}

/** The hub repository of a source; undefined for any other source. */
export function findHubUrl(raw: string): HubUrl | undefined {
  if (!/^hf:/i.test(raw)) return undefined
  const url = parseSourceUrl(raw)
  return url.scheme === 'hf' ? url : undefined
}

const HUB_HOSTS = new Set(['huggingface.co', 'www.huggingface.co', 'hf.co'])
/** First words of pages that are not repositories. */
const HUB_PAGES = new Set([
  'api',
  'docs',
  'spaces',
  'settings',
  'collections',
  'papers',
  'blog',
  'join',
  'login',
])

/**
 * The source of a hub page, as pasted from the browser: its repository, or a folder of it; for the page of one file,
 * the file itself. Undefined: it is not a page of the hub, nor of the one at `endpoint`.
 */
export function findHubPage(raw: string, endpoint: string | undefined): string | undefined {
  const url = URL.parse(raw)
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined
  const own = URL.parse(endpoint ?? '')
  const isOwn = own !== null && own.host === url.host
  if (!isOwn && !HUB_HOSTS.has(url.hostname)) return undefined
  const base = isOwn ? own.pathname.replace(/\/+$/, '') : ''
  if (!url.pathname.startsWith(`${base}/`)) return undefined
  const words = url.pathname
    .slice(base.length + 1)
    .split('/')
    .filter(Boolean)
  const kind = words[0] === 'datasets' || words[0] === 'models' ? words.shift()! : 'models'
  const [organisation = '', name = '', view, revision, ...inside] = words
  if (HUB_PAGES.has(organisation) || !HUB_NAME.test(organisation) || !HUB_NAME.test(name)) return undefined
  if (view === 'blob') return raw.replace('/blob/', '/resolve/')
  if (view !== undefined && view !== 'tree') return undefined
  const repository = `${kind === 'models' ? '' : `${kind}/`}${organisation}/${name}`
  return `hf://${repository}${revision === undefined || revision === 'main' ? '' : `@${revision}`}${inside.length > 0 ? `/${inside.join('/')}` : ''}`
}

/** The folder name of a repository in the caches of the hub's clients. */
export function nameHubFolder({ kind, repository }: HubUrl): string {
  return `${kind}--${repository.replaceAll('/', '--')}`
}

/** The repository with this folder name in the caches of the hub's clients; undefined for any other name. */
export function parseHubFolder(name: string): Pick<HubUrl, 'kind' | 'repository'> | undefined {
  const [, kind, first, second] = /^(models|datasets)--(.+?)(?:--(.+))?$/.exec(name) ?? []
  if (first === undefined) return undefined
  const names = second === undefined ? [first] : [first, second]
  if (!names.every((each) => HUB_NAME.test(each))) return undefined
  return { kind: kind as HubUrl['kind'], repository: names.join('/') }
}

/** The canonical form of a source, the same for every spelling. */
export function formatSourceUrl(url: SourceUrl): string {
  switch (url.scheme) {
    case 's3':
      return `s3://${url.bucket}/${url.prefix}`
    case 'file':
      return `file://${url.directory}`
    case 'https':
    case 'http':
      return url.url.replace(/\?.*$/s, '')
    case 'oci':
      return `oci://${url.registry}/${url.repository}${url.reference}`
    case 'hf': {
      const kind = url.kind === 'models' ? '' : `${url.kind}/`
      const revision = url.revision === HUB_DEFAULT_REVISION ? '' : `@${encodeURIComponent(url.revision)}`
      return `hf://${kind}${url.repository}${revision}/${url.folder}`
    }
  }
}

/**
 * One text for every spelling of a source, to compare sources by. Unlike `formatSourceUrl` it keeps the query of a web
 * source, which may be secret. Throws as `parseSourceUrl` does.
 */
export function canonicalizeSource(raw: string): string {
  const url = parseSourceUrl(raw)
  return 'url' in url ? url.url : formatSourceUrl(url)
}

/** As `canonicalizeSource`; undefined for text that names no source. */
export function findCanonicalSource(raw: string): string | undefined {
  try {
    return canonicalizeSource(raw)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

const PARSERS: Readonly<Record<SourceScheme, (raw: string, rest: string) => SourceUrl>> = {
  s3: parseS3,
  file: parseFile,
  hf: parseHub,
  oci: parseOci,
  https: parseWeb,
  http: parseWeb,
}

function unusable(raw: string, problem: string): RangeError {
  // The text before "@" or after "?" may be a secret.
  const shown = raw
    .replace(/^([a-z0-9+.-]+:\/\/)[^/@]*@/i, '$1')
    .replace(/[?#].*$/s, '')
    .slice(0, 200)
  return new RangeError(
    `expected a source such as ${SOURCE_EXAMPLES}, found ${JSON.stringify(shown)}: ${problem}`,
  )
}
