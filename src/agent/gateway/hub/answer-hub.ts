import type { IncomingMessage, ServerResponse } from 'node:http'
import { readBody } from '../../../frames/body.js'
import type { Manifest } from '../../../manifest/manifest.js'
import { describeFile, listTree } from './list-tree.js'
import type { AskedRepository, HubOperation } from './parse-hub-request.js'

const MAX_BODY_BYTES = 1024 * 1024

/** A refusal in terms that a hub's clients know: those of huggingface_hub's `hf_raise_for_status`. */
export class HubRefusal extends Error {
  readonly status: number
  readonly word: string

  constructor(status: number, word: string, message: string) {
    super(message)
    this.status = status
    this.word = word
  }
}

/** A copy of a repository, at one commit. */
export interface HubSnapshot {
  readonly commit: string
  /** The repository folder that the copy holds: empty, or ends in `/`. */
  readonly folder: string
  /** Calls `look` with the manifest of its files. */
  look<Value>(look: (manifest: Manifest) => Value): Promise<Value>
  /** Sends a file, or the requested range of it; `key` is relative to `folder`. */
  send(key: string, exchange: HubExchange): Promise<void>
}

/** A request and its answer. */
export interface HubExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The client's scheme, if the configuration names it. */
  readonly scheme?: 'http' | 'https' | undefined
}

/** Answers a hub client's request about a repository; `find` returns it, or throws a HubRefusal. */
export async function answerHub(
  operation: HubOperation,
  find: (of: AskedRepository) => Promise<HubSnapshot>,
  exchange: HubExchange,
): Promise<void> {
  const { request, response } = exchange
  const { method = '' } = request
  if (operation.kind === 'other')
    throw method === 'GET' || method === 'HEAD'
      ? new HubRefusal(
          404,
          '',
          'of a hub, only repositories, their files, refs and commits are answered here',
        )
      : new HubRefusal(501, '', `repositories are read here, not written: ${method} is not answered`)
  if (!(operation.kind === 'paths' ? ['POST'] : ['GET', 'HEAD']).includes(method))
    throw new HubRefusal(405, '', `repositories are read here, not written: ${method} is not answered`)
  const snapshot = await find(operation.of)
  const { commit, folder } = snapshot
  response.setHeader('x-repo-commit', commit)
  switch (operation.kind) {
    case 'file': {
      const { path } = operation
      if (!path.startsWith(folder)) throw missing(path)
      return snapshot.send(path.slice(folder.length), exchange)
    }
    case 'info':
      return sendJson(response, await snapshot.look((manifest) => describe(operation.of, snapshot, manifest)))
    case 'refs':
      return sendJson(response, describeRefs(operation.of, commit))
    case 'commits': {
      const of = await snapshot.look((manifest) => describe(operation.of, snapshot, manifest))
      return sendJson(response, [{ id: commit, title: '', message: '', authors: [], date: of.lastModified }])
    }
    case 'tree': {
      const page = await snapshot.look((manifest) => listTree(manifest, { ...operation, copyFolder: folder }))
      if (page === undefined) throw missing(operation.folder)
      if (page.next !== undefined) {
        const url = new URL(
          `${exchange.scheme ?? readScheme(request)}://${request.headers.host ?? 'localhost'}${request.url}`,
        )
        url.searchParams.set('cursor', page.next)
        response.setHeader('link', `<${url.href}>; rel="next"`)
      }
      return sendJson(response, page.entries)
    }
    case 'paths': {
      const refuse = (problem: string) => new HubRefusal(413, 'BadRequest', problem)
      const body = await readBody(request, MAX_BODY_BYTES, refuse)
      const paths = readPaths(body.toString('utf8'), request.headers['content-type'])
      return sendJson(
        response,
        await snapshot.look((manifest) => paths.flatMap((path) => findPath(manifest, folder, path))),
      )
    }
  }
}

/** The scheme between the client and a proxy in front of this server, if there is a proxy. */
function readScheme({ headers }: IncomingMessage): 'http' | 'https' {
  const forwarded = /(?:^|[;,\s])proto="?(https?)/i.exec(headers.forwarded ?? '')?.[1]
  const named =
    forwarded ??
    String(headers['x-forwarded-proto'] ?? '')
      .split(',')[0]!
      .trim()
  return named.toLowerCase() === 'https' ? 'https' : 'http'
}

/** Answers with the refusal. */
export function refuseHub({ request, response }: HubExchange, refusal: HubRefusal): void {
  const { status, word, message } = refusal
  const body = request.method === 'HEAD' ? '' : JSON.stringify({ error: message })
  // Characters that a header cannot hold appear only in the body.
  const told = message.replaceAll(/[^\t\x20-\x7e]/g, '?')
  response
    .writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'x-error-message': told,
      ...(word === '' ? {} : { 'x-error-code': word }),
    })
    .end(body)
}

function missing(path: string): HubRefusal {
  return new HubRefusal(404, 'EntryNotFound', `there is no ${path} in this copy`)
}

/** A copy knows of its repository what it was asked for. */
function describeRefs({ revision }: AskedRepository, commit: string): unknown {
  const branch = { name: revision, ref: `refs/heads/${revision}`, targetCommit: commit }
  return { branches: [branch], tags: [], converts: [] }
}

function describe(of: AskedRepository, { commit, folder }: HubSnapshot, manifest: Manifest) {
  const siblings: { readonly rfilename: string }[] = []
  let modifiedAtMs = 0
  for (const entry of manifest.entriesByKey()) {
    if (entry.state === 'elsewhere') continue
    siblings.push({ rfilename: folder + entry.key })
    modifiedAtMs = Math.max(modifiedAtMs, entry.modifiedAtMs)
  }
  const lastModified = new Date(modifiedAtMs).toISOString()
  return {
    _id: commit.slice(0, 24),
    id: of.repository,
    ...(of.kind === 'models' ? { modelId: of.repository } : {}),
    sha: commit,
    lastModified,
    createdAt: lastModified,
    private: false,
    gated: false,
    disabled: false,
    tags: [],
    downloads: 0,
    likes: 0,
    siblings,
  }
}

function findPath(manifest: Manifest, folder: string, path: string): readonly unknown[] {
  if (!path.startsWith(folder)) return []
  const entry = manifest.find(path.slice(folder.length))
  if (entry) return [describeFile(path, entry)]
  const below = listTree(manifest, {
    copyFolder: folder,
    folder: `${path}/`,
    isRecursive: false,
    after: undefined,
  })
  return below ? [{ type: 'directory', path, oid: '0'.repeat(40), size: 0 }] : []
}

/** The paths in a form or in JSON: clients send either. */
function readPaths(body: string, type: string | undefined): readonly string[] {
  if (!type?.includes('json')) return new URLSearchParams(body).getAll('paths')
  try {
    const { paths } = JSON.parse(body) as { readonly paths?: unknown }
    return Array.isArray(paths) ? paths.filter((path) => typeof path === 'string') : []
  } catch {
    throw new HubRefusal(400, 'BadRequest', 'expected JSON with paths')
  }
}

function sendJson(response: ServerResponse, value: unknown): void {
  const body = JSON.stringify(value)
  response
    .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    .end(body)
}
