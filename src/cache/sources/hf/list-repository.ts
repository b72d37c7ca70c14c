import { SourceFailure } from '../../../failure/source-failure.js'
import type { ObjectChecksum } from '../../../model/manifest.js'
import type { HubUrl } from '../../../model/source-url.js'
import type { ListedObject, ListOptions } from '../source.js'
import type { WebClient } from '../web-client.js'
import { speakHub } from './hub-failure.js'
import { apiPath, pagePath } from './hub-paths.js'

/** A file or folder of a repository, as `GET /api/…/tree/…` gives it. */
interface TreeEntry {
  readonly type: string
  readonly path: string
  readonly size: number
  /** Git's name of the content; of a large file, of the pointer to it. */
  readonly oid: string
  /** Of a file that is kept beside the repository: SHA-256 of the content, hexadecimal. */
  readonly lfs?: { readonly oid: string; readonly size: number }
}

const SHA256 = /^[0-9a-f]{64}$/
const SHA1 = /^[0-9a-f]{40}$/

/**
 * Lists a folder of a repository: first asks which commit the revision is, then for that commit's files, so that all
 * pages are of one state. Each object's version is the commit, its checksum what the hub has of its content.
 * Source: the hub's API, huggingface.co/docs/hub/api; huggingface_hub's `HfApi.list_repo_tree`.
 */
export async function* listRepository(
  client: WebClient,
  source: { readonly endpoint: string; readonly url: HubUrl; readonly what: string },
  options: ListOptions,
): AsyncGenerator<readonly ListedObject[]> {
  const { endpoint, url, what } = source
  const question = { ...options, what, dialect: speakHub(`${endpoint}${pagePath(url)}`) }
  const base = `${endpoint}${apiPath(url)}`
  const about = await client.readText(`${base}/revision/${encodeURIComponent(url.revision)}`, question)
  const { sha, lastModified } = readJson(about.body, what) as { sha?: unknown; lastModified?: unknown }
  if (typeof sha !== 'string' || !SHA1.test(sha)) throw notAHub(what, 'no commit in its answer')
  const modifiedAtMs = Date.parse(String(lastModified)) || 0
  const folder = encodeURIComponent(url.folder.replace(/\/$/, ''))
  const seen = new Set<string>()
  let next: string | undefined = `${base}/tree/${sha}${folder && `/${folder}`}?recursive=true&expand=false`
  while (next !== undefined) {
    if (seen.has(next)) throw notAHub(what, 'its listing goes in circles')
    seen.add(next)
    const { headers, body } = await client.readText(next, question)
    const entries = readJson(body, what)
    if (!Array.isArray(entries)) throw notAHub(what, 'its listing is none')
    const page = (entries as readonly TreeEntry[])
      .filter(({ type }) => type === 'file')
      .map((entry) => describe(entry, { ...url, what, commit: sha, modifiedAtMs }))
    if (page.length > 0) yield page
    next = findNext(headers.link, next)
  }
}

function describe(
  entry: TreeEntry,
  place: {
    readonly folder: string
    readonly what: string
    readonly commit: string
    readonly modifiedAtMs: number
  },
): ListedObject {
  const { path, lfs, oid } = entry
  const sizeBytes = lfs?.size ?? entry.size
  const isFile = typeof path === 'string' && path.startsWith(place.folder) && Number.isSafeInteger(sizeBytes)
  const checksum = lfs ? readDigest('sha256', lfs.oid, SHA256) : readDigest('git-sha1', oid, SHA1)
  if (!isFile || sizeBytes < 0 || checksum === undefined)
    throw notAHub(
      place.what,
      `an entry of its listing is not understood: ${JSON.stringify(entry).slice(0, 200)}`,
    )
  return {
    key: path.slice(place.folder.length),
    sizeBytes,
    etag: lfs?.oid ?? oid,
    versionId: place.commit,
    checksum,
    modifiedAtMs: place.modifiedAtMs,
  }
}

function readDigest(
  algorithm: ObjectChecksum['algorithm'],
  hexadecimal: unknown,
  form: RegExp,
): ObjectChecksum | undefined {
  if (typeof hexadecimal !== 'string' || !form.test(hexadecimal)) return undefined
  return { algorithm, value: Buffer.from(hexadecimal, 'hex').toString('base64') }
}

/** The URL of the next page: `<…>; rel="next"` (RFC 8288), of the same server only. */
function findNext(link: string | undefined, current: string): string | undefined {
  const found = /<([^>]*)>\s*;[^,]*\brel="?next"?/.exec(link ?? '')?.[1]
  if (found === undefined) return undefined
  const { origin, pathname, search } = new URL(found, current)
  return origin === new URL(current).origin ? `${origin}${pathname}${search}` : undefined
}

function readJson(body: Buffer, what: string): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw notAHub(what, 'its answer is no JSON')
  }
}

function notAHub(what: string, problem: string): SourceFailure {
  return new SourceFailure('SOURCE_UNREACHABLE', `${what}: the server is no hub: ${problem}`, {
    isTransient: false,
    hint: 'check `endpoint:` of the dataset (or HF_ENDPOINT)',
  })
}
