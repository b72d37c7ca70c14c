import { tryJson } from '../../model/try-json.js'
/** A file that a list names. */
export interface NamedFile {
  readonly url: string
  /** Path in the copy. */
  readonly key: string
  /** Undefined: ask the server. */
  readonly sizeBytes: number | undefined
  /** Undefined: unknown. */
  readonly digest: FileDigest | undefined
}

/** The digest of a file according to its list. */
export interface FileDigest {
  readonly algorithm: 'sha256' | 'md5'
  /** Hexadecimal, lower case. */
  readonly hex: string
}

/** The format of a list, told by its name. Any other URL is a single file. */
type ListFormat = 'lines' | 'croissant' | 'bagit'

const SHA256 = /^[0-9a-f]{64}$/i

/** The format of the list at a URL, by its name; undefined: not a list, but the dataset's only file. */
export function findListFormat(url: string): ListFormat | undefined {
  const name = new URL(url).pathname.split('/').at(-1) ?? ''
  if (/(^|[._-])files\.txt$/i.test(name)) return 'lines'
  if (/croissant.*\.json(ld)?$/i.test(name)) return 'croissant'
  if (/^manifest-sha256\.txt$/i.test(name)) return 'bagit'
  return undefined
}

/**
 * Reads a list of files. `lines`: per line a URL and, where known, its size in bytes and SHA-256; a line that begins
 * with `#` is a comment. `bagit`: RFC 8493, 2.1.3, a SHA-256 and a path per line. `croissant`: the FileObjects of
 * MLCommons Croissant 1.0, with `contentUrl` and `sha256` or `md5`. URLs may be relative to the list's own. Throws a
 * RangeError that says where the list is invalid.
 */
export function parseFileList(text: string, format: ListFormat, base: string): readonly NamedFile[] {
  const files = format === 'croissant' ? readCroissant(text, base) : readLines(text, { format, base })
  const seen = new Set<string>()
  for (const { key } of files) {
    if (seen.has(key)) throw new RangeError(`${JSON.stringify(key)} is listed twice`)
    seen.add(key)
  }
  return files
}

function readLines(
  text: string,
  { format, base }: { readonly format: 'lines' | 'bagit'; readonly base: string },
): readonly NamedFile[] {
  return text.split(/\r?\n/).flatMap((line, at) => {
    if (line.trim() === '' || line.startsWith('#')) return []
    const file = format === 'bagit' ? readBagLine(line, base) : readLine(line.trim(), base)
    if (file) return [file]
    const expected = format === 'bagit' ? 'SHA-256 and path' : 'URL, size and SHA-256'
    throw new RangeError(`line ${at + 1}: expected ${expected}, found ${JSON.stringify(line.slice(0, 200))}`)
  })
}

function readLine(line: string, base: string): NamedFile | undefined {
  const [address = '', ...words] = line.split(/\s+/)
  const digest = words.find((word) => SHA256.test(word))
  const size = words.find((word) => /^\d{1,15}$/.test(word))
  if (words.length !== Number(digest !== undefined) + Number(size !== undefined)) return undefined
  if (/\p{Cc}/u.test(address)) return undefined // bytes that are no text: a URL would drop the first of them
  return describe(address, base, {
    digest: digest === undefined ? undefined : { algorithm: 'sha256', hex: digest.toLowerCase() },
    sizeBytes: size === undefined ? undefined : Number(size),
  })
}

/** Percent signs, line feeds and carriage returns of paths are escaped (RFC 8493, 2.1.3). */
function readBagLine(line: string, base: string): NamedFile | undefined {
  const [, digest, path] = /^([0-9a-f]{64})\s+\*?(\S.*)$/i.exec(line) ?? []
  if (digest === undefined || path === undefined) return undefined
  const name = path
    .replace(/%(0A|0D|25)/gi, (escaped) => decodeURIComponent(escaped))
    .split('/')
    .map(encodeURIComponent)
    .join('/')
  const hex = digest.toLowerCase()
  return describe(name, base, { digest: { algorithm: 'sha256', hex }, sizeBytes: undefined })
}

function readCroissant(text: string, base: string): readonly NamedFile[] {
  const document = tryJson(text) as { readonly distribution?: unknown } | undefined
  if (document === undefined) throw new RangeError('expected Croissant, found what is no JSON')
  const { distribution } = document
  if (!Array.isArray(distribution)) throw new RangeError('expected Croissant with a distribution, found none')
  return distribution.flatMap((entry: Readonly<Record<string, unknown>>, at) => {
    const { contentUrl, contentSize, containedIn, encodingFormat, '@type': type } = entry
    // The contents of an archive come with the archive.
    if (containedIn !== undefined) return []
    const place = `distribution ${at + 1}`
    if (!String(type).endsWith('FileObject') || typeof contentUrl !== 'string')
      throw new RangeError(`${place}: expected a FileObject with a contentUrl, found ${JSON.stringify(type)}`)
    if (String(encodingFormat).startsWith('git'))
      throw new RangeError(
        `${place}: expected a file, found the git repository ${contentUrl} (one of a Hugging Face hub is hf://datasets/org/name)`,
      )
    const size = /^(\d{1,15})(?: ?B)?$/.exec(String(contentSize ?? ''))?.[1]
    const sizeBytes = size === undefined ? undefined : Number(size)
    const file = describe(contentUrl, base, { digest: readDigest(entry, place), sizeBytes })
    if (file) return [file]
    throw new RangeError(`${place}: expected an http(s) contentUrl, found ${JSON.stringify(contentUrl)}`)
  })
}

const DIGESTS = [
  { algorithm: 'sha256', bytes: 32, title: 'SHA-256' },
  { algorithm: 'md5', bytes: 16, title: 'MD5' },
] as const

/** The strongest of several. Kaggle writes MD5 in base64. */
function readDigest(entry: Readonly<Record<string, unknown>>, place: string): FileDigest | undefined {
  for (const { algorithm, bytes, title } of DIGESTS) {
    const raw = entry[algorithm] ?? ''
    if (raw === '') continue
    const text = String(raw)
    const isHex = text.length === 2 * bytes && /^[0-9a-f]+$/i.test(text)
    const value = Buffer.from(text, isHex ? 'hex' : 'base64')
    if (value.length === bytes && (isHex || value.toString('base64') === text))
      return { algorithm, hex: value.toString('hex') }
    throw new RangeError(`${place}: expected ${algorithm} to be a ${title}, found ${JSON.stringify(raw)}`)
  }
  return undefined
}

/** The path is the one below the list's folder, else host and path. */
function describe(
  address: string,
  base: string,
  known: Pick<NamedFile, 'digest' | 'sizeBytes'>,
): NamedFile | undefined {
  const url = URL.parse(address, base)
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
  const folder = new URL('.', base)
  const isBelow = url.origin === folder.origin && url.pathname.startsWith(folder.pathname)
  const path = isBelow ? url.pathname.slice(folder.pathname.length) : `${url.host}${url.pathname}`
  const key = decodePath(path)
  return key === undefined || key === '' || key.endsWith('/') ? undefined : { url: url.href, key, ...known }
}

/** Decodes the path of a URL; undefined if its percent escapes are broken. */
export function decodePath(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}
