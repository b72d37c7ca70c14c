import { createHash } from 'node:crypto'
import { atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { SourceFailure } from '../../failure/source-failure.js'
import type { Headers } from '../../http/answer-listener.js'
import { type Dataset, isUndeclared } from '../../model/dataset.js'
import { formatSourceUrl, parseSourceUrl } from '../../model/source-url.js'
import { readEtag } from '../answer-handler.js'
import { readWebAuthorities } from '../read-certificates.js'
import type { ListedObject, ListOptions, OpenFetcher, Source } from '../source.js'
import { UNTOLD } from '../untold-etag.js'
import { WebClient } from '../web-client.js'
import { WEB_DIALECT } from '../web-failure.js'
import { WebFetcher } from '../web-fetcher.js'
import { decodePath, findListFormat, type NamedFile, parseFileList } from './parse-file-list.js'

/** Concurrent requests for files' sizes, when their list does not give them. */
const QUESTIONS = 16
const PAGE_OBJECTS = 1000
/**
 * A million lines of 250 characters, where somebody has named the dataset. At the door of a service every user may ask
 * for any URL, several at once: lists that nobody has named have the limit of other answers, for they are in memory.
 */
const MAX_NAMED_LIST_BYTES = 256 * 1024 * 1024

/** Where a source's files are. Plain data, so that it can be passed to a worker. */
interface WebLocation {
  /** URL of the list, or of the only file. */
  readonly url: string
  readonly ca: string | undefined
}

/** Opens the file at a URL, or the files that a list there names. */
export function openWebSource(dataset: Dataset): Source {
  const parsed = parseSourceUrl(dataset.source)
  if (parsed.scheme !== 'https' && parsed.scheme !== 'http')
    throw new RangeError(`expected an https:// source, found ${dataset.source}`)
  const { url } = parsed
  const what = formatSourceUrl(parsed)
  const locate = async (): Promise<WebLocation> => ({ url, ca: await readWebAuthorities() })
  return {
    url: what,
    async *list(options) {
      const { ca } = await locate()
      const client = new WebClient({ connections: QUESTIONS, ca, authorize: () => ({}), home: url })
      using _ = atEndNow(() => client.close())
      const maxBytes = isUndeclared(dataset) ? undefined : MAX_NAMED_LIST_BYTES
      const files = await listFiles(client, { url, what, maxBytes }, options)
      for (let at = 0; at < files.length; at += PAGE_OBJECTS)
        yield await describeAll(client, files.slice(at, at + PAGE_OBJECTS), options)
    },
    openFetcher: async ({ connections }) => createWebFetcher(await locate(), connections),
    describeAccess: async () => ({ scheme: parsed.scheme, location: await locate() }),
    async close() {},
  }
}

/** Opens a fetcher for a source that the main thread has described. */
export const openWebFetcher: OpenFetcher = ({ location, connections }) =>
  createWebFetcher(location as WebLocation, connections)

function createWebFetcher({ url, ca }: WebLocation, connections: number): WebFetcher {
  const locate = ({ versionId }: { readonly versionId: string | null }) => {
    const target = versionId ?? url
    return { url: target, what: withoutQuery(target) }
  }
  const protocol = { locate, dialect: WEB_DIALECT, hasRanges: false, hasEtags: true }
  return new WebFetcher(protocol, { connections, ca, authorize: () => ({}), home: url })
}

async function listFiles(
  client: WebClient,
  {
    url,
    what,
    maxBytes,
  }: { readonly url: string; readonly what: string; readonly maxBytes: number | undefined },
  options: ListOptions,
): Promise<readonly NamedFile[]> {
  const format = findListFormat(url)
  if (format === undefined) {
    const key = decodePath(new URL(url).pathname.split('/').at(-1) ?? '') || 'index.html'
    return [{ url, key, sizeBytes: undefined, digest: undefined }]
  }
  const { body } = await client.readText(url, { ...options, what, dialect: WEB_DIALECT, maxBytes })
  try {
    return parseFileList(body.toString('utf8'), format, url)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new DscError('SOURCE_UNREACHABLE', `${what} is no list of files: ${error.message}`, {
      cause: error,
      hint: 'a list is named files.txt, manifest-sha256.txt (BagIt) or croissant.json; any other URL is one file',
    })
  }
}

async function describeAll(
  client: WebClient,
  files: readonly NamedFile[],
  options: ListOptions,
): Promise<readonly ListedObject[]> {
  const objects: ListedObject[] = []
  for (let at = 0; at < files.length; at += QUESTIONS)
    objects.push(
      ...(await Promise.all(files.slice(at, at + QUESTIONS).map((file) => describe(client, file, options)))),
    )
  return objects
}

/** Asks the server for facts about a file that the list does not give. The URL is kept as the object's version. */
async function describe(client: WebClient, file: NamedFile, options: ListOptions): Promise<ListedObject> {
  const { url, key, digest } = file
  const checksum = digest
    ? { algorithm: digest.algorithm, value: Buffer.from(digest.hex, 'hex').toString('base64') }
    : null
  const isKnown = file.sizeBytes !== undefined && digest !== undefined
  const headers = isKnown
    ? {}
    : await client.readHead(url, { ...options, what: withoutQuery(url), dialect: WEB_DIALECT })
  const sizeBytes = file.sizeBytes ?? readSize(headers, withoutQuery(url))
  const etag = digest?.hex ?? readEtag(headers) ?? nameUntold(headers, sizeBytes)
  const modifiedAtMs = Date.parse(headers['last-modified'] ?? '') || 0
  return { key, sizeBytes, etag, versionId: url, checksum, modifiedAtMs }
}

/** Changes when size or date do: for servers without etags. */
function nameUntold(headers: Headers, sizeBytes: number): string {
  const told = `${sizeBytes} ${headers['last-modified'] ?? ''}`
  return `${UNTOLD}${createHash('sha256').update(told).digest('hex').slice(0, 32)}`
}

function readSize(headers: Headers, what: string): number {
  const size = Number(headers['content-length'])
  if (headers['content-length'] !== undefined && Number.isSafeInteger(size) && size >= 0) return size
  throw new SourceFailure('SOURCE_UNREACHABLE', `${what}: the server does not say how large it is`, {
    hint: 'write a list with sizes and SHA-256 (files.txt), and use that as the source',
  })
}

function withoutQuery(url: string): string {
  return url.replace(/[?#].*$/s, '')
}
