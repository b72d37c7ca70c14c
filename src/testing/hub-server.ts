import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { IDLE_TIMEOUT_MS } from './listen-locally.js'

type Files = ReadonlyMap<string, Buffer>

interface Repository {
  /** Keyed by commit. */
  readonly commits: Map<string, Files>
  /** Commit by branch or tag. */
  readonly revisions: Map<string, string>
  isGated: boolean
  /** The only token with access. */
  token: string | undefined
}

/** Controls of a hub's server. */
export interface HubServer {
  /** `http://127.0.0.1:port`. */
  readonly endpoint: string
  /** Commits these files and points the branch to the commit; returns the commit. `name`: `models/org/name`. */
  commit(
    name: string,
    files: Readonly<Record<string, string | Uint8Array>>,
    options?: { readonly branch?: string; readonly keeps?: boolean },
  ): string
  protect(name: string, by: { readonly isGated?: boolean; readonly token?: string }): void
  /** Called with each request before the answer; true: it has sent the answer itself. */
  onRequest: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined
  /** Refuses all signed URLs issued so far. */
  expireSignedUrls(): void
  /** Method and path of every request so far. */
  readonly requests: string[]
  /** Headers received by the server of large files. */
  readonly storeHeaders: IncomingMessage['headers'][]
  /** File bytes sent so far. */
  sentBytes: number
  close(): Promise<void>
}

const PAGE_ENTRIES = 50
/** Files that a hub stores outside the repository, by name, as in `.gitattributes` of new repositories. */
const LARGE = /\.(safetensors|bin|parquet|tar|zip|gz|zst|npy|onnx|pt)$/

/**
 * A hub with the part of the public API that its clients use, after huggingface_hub 1.x (`hf_api.py`,
 * `file_download.py`): listing, information, `resolve` with redirects to another origin for large files, gated and
 * private repositories.
 */
export async function startHubServer(): Promise<HubServer> {
  const repositories = new Map<string, Repository>()
  const signatures = new Set<string>()
  let signatureCount = 0
  const server = createServer((request, response) => {
    hub.requests.push(`${request.method} ${request.url}`)
    if (hub.onRequest?.(request, response)) return
    answer(request, response).catch((error: unknown) => {
      response.statusCode = 500
      response.end(String(error))
    })
  })
  server.keepAliveTimeout = IDLE_TIMEOUT_MS
  await once(server.listen(0), 'listening') // at every address: pods of the test cluster ask it, too
  const { port } = server.address() as AddressInfo
  const endpoint = `http://127.0.0.1:${port}`
  const hub: HubServer = {
    endpoint,
    commit(name, added, { branch = 'main', keeps = false } = {}) {
      const repository = repositories.get(name) ?? {
        commits: new Map(),
        revisions: new Map(),
        isGated: false,
        token: undefined,
      }
      repositories.set(name, repository)
      const before = keeps ? repository.commits.get(repository.revisions.get(branch) ?? '') : undefined
      const files = new Map<string, Buffer>([
        ...(before ?? []),
        ...Object.entries(added).map(
          ([path, body]) => [path, Buffer.isBuffer(body) ? body : Buffer.from(body)] as const,
        ),
      ])
      const digest = createHash('sha1').update(`${name} ${repository.commits.size}`)
      for (const [path, body] of files) digest.update(path).update(sha256Of(body))
      const commit = digest.digest('hex')
      repository.commits.set(commit, files)
      repository.revisions.set(branch, commit)
      return commit
    },
    protect(name, { isGated = false, token }) {
      Object.assign(repositories.get(name)!, { isGated, token })
    },
    onRequest: undefined,
    expireSignedUrls: () => signatures.clear(),
    requests: [],
    storeHeaders: [],
    sentBytes: 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', endpoint)
    const words = url.pathname.split('/').filter(Boolean).map(decodeURIComponent)
    if (words[0] === 'store') return sendStored(request, response, url)
    if (words[0] === 'api') return answerApi(request, response, { words: words.slice(1), url })
    const kind = words[0] === 'datasets' ? 'datasets' : 'models'
    const rest = kind === 'datasets' ? words.slice(1) : words
    const at = rest.indexOf('resolve')
    const name = rest.slice(0, at).join('/')
    const repository = find(request, response, `${kind}/${name}`)
    if (!repository) return
    if (repository.isGated) return refuse(response, 403, 'GatedRepo', `Access to ${name} is restricted.`)
    const commit = findCommit(response, repository, rest[at + 1]!)
    if (!commit) return
    const path = rest.slice(at + 2).join('/')
    const body = repository.commits.get(commit)!.get(path)
    if (!body) return refuse(response, 404, 'EntryNotFound', 'Entry not found')
    response.setHeader('x-repo-commit', commit)
    response.setHeader('accept-ranges', 'bytes')
    if (!LARGE.test(path)) {
      response.setHeader('etag', `"${gitName(body)}"`)
      return send(request, response, body)
    }
    const sha256 = sha256Of(body)
    signatureCount += 1
    const signature = `s${signatureCount}`
    signatures.add(signature)
    const query = new URLSearchParams({ signature, name: `${kind}/${name}`, commit, path })
    response.writeHead(302, {
      location: `http://localhost:${port}/store/${sha256}?${query}`,
      'x-linked-etag': `"${sha256}"`,
      'x-linked-size': String(body.length),
      etag: `"${gitName(Buffer.from(sha256))}"`,
      'content-length': '0',
    })
    response.end()
  }

  function sendStored(request: IncomingMessage, response: ServerResponse, url: URL): void {
    hub.storeHeaders.push(request.headers)
    const get = (name: string) => url.searchParams.get(name) ?? ''
    if (!signatures.has(get('signature'))) {
      refuse(response, 403, '', 'the signature has expired')
      return
    }
    const body = repositories.get(get('name'))!.commits.get(get('commit'))!.get(get('path'))!
    response.setHeader('etag', '"of-the-store"')
    response.setHeader('accept-ranges', 'bytes')
    send(request, response, body)
  }

  async function answerApi(
    request: IncomingMessage,
    response: ServerResponse,
    { words, url }: { readonly words: readonly string[]; readonly url: URL },
  ): Promise<void> {
    const [kind = '', ...rest] = words
    if (kind === 'whoami-v2') return sendJson(response, { name: 'somebody', type: 'user', orgs: [] })
    const at = rest.findIndex((word) => word === 'revision' || word === 'tree' || word === 'paths-info')
    const name = (at === -1 ? rest : rest.slice(0, at)).join('/')
    const repository = find(request, response, `${kind}/${name}`)
    if (!repository) return
    const commit = findCommit(response, repository, at === -1 ? 'main' : rest[at + 1]!)
    if (!commit) return
    const files = repository.commits.get(commit)!
    const operation = at === -1 ? 'revision' : rest[at]
    if (operation === 'tree') {
      const folder = rest.slice(at + 2).join('/')
      return sendTree(response, { files, folder, url })
    }
    if (operation === 'paths-info') {
      const paths = new URLSearchParams(await text(request)).getAll('paths')
      return sendJson(
        response,
        [...files].filter(([path]) => paths.includes(path)).map(([path, body]) => describe(path, body)),
      )
    }
    sendJson(response, {
      _id: '0',
      id: name,
      ...(kind === 'models' ? { modelId: name } : {}),
      sha: commit,
      lastModified: '2026-01-02T03:04:05.000Z',
      private: false,
      gated: false,
      disabled: false,
      tags: [],
      downloads: 0,
      likes: 0,
      siblings: [...files.keys()].map((rfilename) => ({ rfilename })),
    })
  }

  function find(request: IncomingMessage, response: ServerResponse, name: string): Repository | undefined {
    const repository = repositories.get(name)
    const isSeen =
      repository?.token === undefined || request.headers.authorization === `Bearer ${repository.token}`
    if (repository && isSeen) return repository
    const status = request.headers.authorization === undefined ? 401 : 404
    refuse(response, status, 'RepoNotFound', 'Repository not found')
    return undefined
  }

  function send(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? []
    const from = Number(first ?? 0)
    const to = Math.min(last ? Number(last) : body.length - 1, body.length - 1)
    if (first !== undefined) {
      response.statusCode = from < body.length ? 206 : 416
      response.setHeader('content-range', `bytes ${from}-${to}/${body.length}`)
    }
    const part = first === undefined ? body : body.subarray(from, to + 1)
    response.setHeader('content-length', String(part.length))
    if (request.method === 'HEAD') return void response.end()
    hub.sentBytes += part.length
    response.end(part)
  }
  return hub
}

function sendTree(
  response: ServerResponse,
  { files, folder, url }: { readonly files: Files; readonly folder: string; readonly url: URL },
): void {
  const inside = folder === '' ? '' : `${folder}/`
  const isRecursive = /^(true|1)$/i.test(url.searchParams.get('recursive') ?? '')
  const entries = new Map<string, unknown>()
  for (const [path, body] of files) {
    if (!path.startsWith(inside)) continue
    const words = path.slice(inside.length).split('/')
    for (let depth = 1; depth < (isRecursive ? words.length : Math.min(2, words.length)); depth += 1) {
      const at = inside + words.slice(0, depth).join('/')
      entries.set(at, { type: 'directory', oid: '0'.repeat(40), size: 0, path: at })
    }
    if (isRecursive || words.length === 1) entries.set(path, describe(path, body))
  }
  if (entries.size === 0 && folder !== '') {
    refuse(response, 404, 'EntryNotFound', 'no such folder')
    return
  }
  const all = [...entries.values()]
  const from = Number(url.searchParams.get('cursor') ?? 0)
  if (from + PAGE_ENTRIES < all.length) {
    url.searchParams.set('cursor', String(from + PAGE_ENTRIES))
    response.setHeader('link', `<${url.href}>; rel="next"`)
  }
  sendJson(response, all.slice(from, from + PAGE_ENTRIES))
}

function findCommit(response: ServerResponse, repository: Repository, revision: string): string | undefined {
  const commit = repository.commits.has(revision) ? revision : repository.revisions.get(revision)
  if (commit === undefined) refuse(response, 404, 'RevisionNotFound', `Invalid rev id: ${revision}`)
  return commit
}

function describe(path: string, body: Buffer): unknown {
  const entry = { type: 'file', path, size: body.length }
  if (!LARGE.test(path)) return { ...entry, oid: gitName(body) }
  const oid = sha256Of(body)
  return { ...entry, oid: gitName(Buffer.from(oid)), lfs: { oid, size: body.length, pointerSize: 130 } }
}

/** Each part needs the digest of its large body; Node hashes less than 2 GiB at once. */
const digests = new WeakMap<Buffer, string>()

function sha256Of(body: Buffer): string {
  const hash = createHash('sha256')
  for (let at = 0; !digests.has(body) && at < body.length; at += 2 ** 30)
    hash.update(body.subarray(at, at + 2 ** 30))
  if (!digests.has(body)) digests.set(body, hash.digest('hex'))
  return digests.get(body)!
}

function gitName(body: Buffer): string {
  return createHash('sha1').update(`blob ${body.length}\0`).update(body).digest('hex')
}

function sendJson(response: ServerResponse, value: unknown): void {
  const body = JSON.stringify(value)
  response.setHeader('content-type', 'application/json')
  response.setHeader('content-length', String(Buffer.byteLength(body)))
  response.end(body)
}

function refuse(response: ServerResponse, status: number, word: string, message: string): void {
  response.writeHead(status, {
    ...(word && { 'x-error-code': word }),
    'x-error-message': message,
    'content-length': '0',
  })
  response.end()
}
