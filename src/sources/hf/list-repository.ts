import { SourceFailure } from '../../failure/source-failure.js'
import { formatCount } from '../../model/format-count.js'
import type { ObjectChecksum } from '../../model/manifest.js'
import type { HubUrl } from '../../model/source-url.js'
import type { ListedObject, ListOptions } from '../source.js'
import type { WebClient } from '../web-client.js'
import { speakHub } from './hub-failure.js'
import { apiPath, pagePath } from './hub-paths.js'
import { findNextPage } from './next-page.js'

/** A file or folder of a repository, as returned by `GET /api/…/tree/…`. */
interface TreeEntry {
  readonly type: string
  readonly path: string
  readonly size: number
  /** Git's object id of the content; for a large file, of its pointer. */
  readonly oid: string
  /** For a file stored outside the repository: SHA-256 of the content, hexadecimal. */
  readonly lfs?: { readonly oid: string; readonly size: number }
}

const SHA256 = /^[0-9a-f]{64}$/
const SHA1 = /^[0-9a-f]{40}$/

/** Where a repository is listed. */
interface ListedRepository {
  readonly endpoint: string
  readonly url: HubUrl
  readonly what: string
}

/**
 * Lists a folder of a repository: first resolves the revision to a commit, then lists that commit's files, so that all
 * pages show one state. Each object's version is the commit; its checksum is the hub's checksum of the content. Servers
 * that only ever list a single folder are asked for each folder. The listing fails if it misses a file that the hub
 * names in the commit.
 * Source: the hub's API, huggingface.co/docs/hub/api; huggingface_hub's `HfApi.list_repo_tree`.
 */
export async function* listRepository(
  client: WebClient,
  source: ListedRepository,
  options: ListOptions,
): AsyncGenerator<readonly ListedObject[]> {
  const { endpoint, url, what } = source
  const question = { ...options, what, dialect: speakHub(`${endpoint}${pagePath(url)}`) }
  const base = `${endpoint}${apiPath(url)}`
  const about = await client.readText(`${base}/revision/${encodeURIComponent(url.revision)}`, question)
  const { sha, lastModified, siblings } = readJson(about.body, what) as Readonly<Record<string, unknown>>
  if (typeof sha !== 'string' || !SHA1.test(sha)) throw notAHub(what, 'no commit in its answer')
  const place = { ...url, what, commit: sha, modifiedAtMs: Date.parse(String(lastModified)) || 0 }
  const file = url.folder.replace(/\/$/, '')
  if (namedFiles(siblings, file).has(file)) {
    yield [await findFile(client, { base, file, place }, { ...question, endpoint })]
    return
  }
  const unlisted = namedFiles(siblings, url.folder)
  const tree = new TreeFolders()
  for (let folder: string | undefined = url.folder.replace(/\/$/, ''); folder !== undefined; ) {
    let listed = 0
    const first = `${base}/tree/${sha}${folder && `/${encodeURIComponent(folder)}`}?recursive=true&expand=false`
    for await (const entries of readPages(client, first, { ...question, endpoint })) {
      const files = entries.filter(({ type, path }) => {
        if (type === 'directory') tree.addFolder(path)
        else if (type !== 'file') throw notUnderstood(what, { type, path })
        return type === 'file' && tree.addFile(path)
      })
      listed += entries.length
      for (const { path } of files) unlisted.delete(path)
      if (files.length > 0) yield files.map((entry) => describe(entry, place))
    }
    // Git keeps no empty folders.
    if (listed === 0 && folder !== '') throw incomplete(what, `nothing of its folder ${folder}`)
    folder = tree.takeUnlisted()
  }
  const [missing] = unlisted
  if (missing !== undefined)
    throw incomplete(
      what,
      `${formatCount(unlisted.size, 'file')} fewer than it names, one of them ${missing}`,
    )
}

/** The file that the source names instead of a folder. */
async function findFile(
  client: WebClient,
  { base, file, place }: { readonly base: string; readonly file: string; readonly place: Place },
  question: Parameters<typeof readPages>[2],
): Promise<ListedObject> {
  const slash = file.lastIndexOf('/')
  const folder = slash === -1 ? '' : `/${encodeURIComponent(file.slice(0, slash))}`
  for await (const entries of readPages(
    client,
    `${base}/tree/${place.commit}${folder}?expand=false`,
    question,
  )) {
    const entry = entries.find(({ type, path }) => type === 'file' && path === file)
    if (entry) return describe(entry, { ...place, folder: file.slice(0, slash + 1) })
  }
  throw incomplete(place.what, `no file ${file}`)
}

/** Requests a listing page by page. */
async function* readPages(
  client: WebClient,
  first: string,
  question: Parameters<WebClient['readText']>[1] & { readonly endpoint: string },
): AsyncGenerator<readonly TreeEntry[]> {
  const { what, endpoint } = question
  const seen = new Set<string>()
  let next: string | undefined = first
  while (next !== undefined) {
    if (seen.has(next)) throw notAHub(what, 'its listing goes in circles')
    seen.add(next)
    const { headers, body } = await client.readText(next, question)
    const entries = readJson(body, what)
    if (!Array.isArray(entries)) throw notAHub(what, 'its listing is not a list')
    for (const entry of entries)
      if (typeof entry?.path !== 'string' || typeof entry.type !== 'string') throw notUnderstood(what, entry)
    yield entries
    next = followLink(headers.link, { endpoint, current: next, what })
  }
}

function followLink(
  link: string | undefined,
  from: { readonly endpoint: string; readonly current: string; readonly what: string },
): string | undefined {
  try {
    return findNextPage(link, from)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw notAHub(from.what, error.message)
  }
}

/** The commit's files in the folder, as the hub names them along with the commit; some hubs name none. */
function namedFiles(siblings: unknown, folder: string): Set<string> {
  const named = Array.isArray(siblings) ? siblings : []
  const paths = named.map((file: { readonly rfilename?: unknown } | null) => file?.rfilename)
  return new Set(paths.filter((path) => typeof path === 'string' && path.startsWith(folder)) as string[])
}

interface Place {
  readonly folder: string
  readonly what: string
  readonly commit: string
  readonly modifiedAtMs: number
}

function describe(entry: TreeEntry, place: Place): ListedObject {
  const { path, lfs, oid } = entry
  const sizeBytes = lfs?.size ?? entry.size
  const isFile = typeof path === 'string' && path.startsWith(place.folder) && Number.isSafeInteger(sizeBytes)
  const checksum = lfs ? readDigest('sha256', lfs.oid, SHA256) : readDigest('git-sha1', oid, SHA1)
  if (!isFile || sizeBytes < 0 || checksum === undefined) throw notUnderstood(place.what, entry)
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

function readJson(body: Buffer, what: string): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw notAHub(what, 'its answer is no JSON')
  }
}

function notAHub(what: string, problem: string): SourceFailure {
  return new SourceFailure('SOURCE_UNREACHABLE', `${what}: the server is no hub: ${problem}`, {
    hint: 'check `endpoint:` of the dataset (or HF_ENDPOINT)',
  })
}

function notUnderstood(what: string, entry: unknown): SourceFailure {
  return notAHub(what, `an entry of its listing is not understood: ${JSON.stringify(entry)?.slice(0, 200)}`)
}

function incomplete(what: string, problem: string): SourceFailure {
  return new SourceFailure(
    'SOURCE_TRUNCATED',
    `${what}: the hub’s listing is not whole: it lists ${problem}`,
    {
      hint: 'a mirror or proxy cuts what the hub answers: check `endpoint:` of the dataset (or HF_ENDPOINT)',
    },
  )
}

/**
 * Tracks which folders of a repository have been listed. A hub lists everything below a folder at once; some mirrors
 * list only its direct entries, so that its subfolders need requests of their own.
 */
class TreeFolders {
  readonly #files = new Set<string>()
  /** Folders with at least one listed entry. */
  readonly #listed = new Set<string>()
  readonly #named: string[] = []

  addFolder(path: string): void {
    this.#named.push(path)
  }

  /** Returns false if the file was listed before. */
  addFile(path: string): boolean {
    if (this.#files.has(path)) return false
    this.#files.add(path)
    for (let end = path.lastIndexOf('/'); end !== -1; end = path.lastIndexOf('/', end - 1)) {
      const folder = path.slice(0, end)
      if (this.#listed.has(folder)) break
      this.#listed.add(folder)
      if (end === 0) break
    }
    return true
  }

  /** A named folder without any listed entry so far; from now on it counts as listed. */
  takeUnlisted(): string | undefined {
    for (let folder = this.#named.pop(); folder !== undefined; folder = this.#named.pop()) {
      if (this.#listed.has(folder)) continue
      this.#listed.add(folder)
      return folder
    }
    return undefined
  }
}
