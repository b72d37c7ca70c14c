import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { json, text } from 'node:stream/consumers'
import { atEndNow } from '../../failure/closers.js'
import { readJsonLines } from '../../frames/lines.js'
import { askOnce } from '../../http/ask-once.js'
import { tryReadFile } from '../../platform/try-read-file.js'

/** Where kubelet puts what a pod's service account asks the API server with; the token changes every hour. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'
const CONNECT_MS = 5000
const SILENCE_MS = 10_000
const MAX_REASON = 300

/** Callers let the API server end a watch after a minute: one that is silent for longer has lost its connection. */
const WATCH_SILENCE_MS = 90_000

/** The API server answered something other than 200 or 201. */
export class ApiRefusal extends Error {
  readonly statusCode: number
  readonly code: string

  constructor(statusCode: number, reason: string) {
    super(`the API server answers ${statusCode}: ${reason}`)
    this.name = 'ApiRefusal'
    this.statusCode = statusCode
    this.code = `HTTP_${statusCode}`
  }
}

/** The code of a refusal where there is no such object. */
export const MISSING = ['HTTP_404']

/** The part of the API server that an agent needs. Its calls reject unless the server does what they ask. */
export interface NodeApiServer {
  get(path: string): Promise<unknown>
  /** RFC 7386 changes the members that a patch names, RFC 6902 follows its steps. */
  patch(path: string, kind: 'merge-patch' | 'json-patch', patch: unknown): Promise<void>
}

/** The API server of the cluster that this process runs in. */
export interface ApiServer extends NodeApiServer {
  /** Creates an object, or replaces one as it was read. */
  send(method: 'POST' | 'PUT', path: string, object: unknown): Promise<void>
  /** The events of a watch, until the server ends it or falls silent. Rejects once `stopping` aborts. */
  watch(path: string, stopping: AbortSignal): AsyncIterable<unknown>
}

interface Change {
  readonly method: 'POST' | 'PUT' | 'PATCH'
  readonly type: string
  readonly body: unknown
}

/** The API server that this pod may ask; undefined: it has no service account, or it is no pod. */
export function findApiServer(
  environment: Readonly<Record<string, string | undefined>>,
  stopping: AbortSignal,
  account: string = SERVICE_ACCOUNT,
): ApiServer | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment
  const ca = tryReadFile(join(account, 'ca.crt'))
  if (!host || !port || ca === undefined) return undefined
  const origin = `https://${host.includes(':') ? `[${host}]` : host}:${port}`
  const ask = async (path: string, change?: Change, silenceMs = SILENCE_MS, signal = stopping) => {
    const answer = await askOnce(`${origin}${path}`, {
      method: change?.method ?? 'GET',
      token: readFileSync(join(account, 'token'), 'utf8').trim(),
      headers: change ? { 'content-type': `application/${change.type}` } : {},
      body: change && JSON.stringify(change.body),
      ca,
      connectTimeoutMs: CONNECT_MS,
      silenceMs,
      signal,
    })
    if (answer.statusCode === 200 || answer.statusCode === 201) return answer
    const reason = (await text(answer)).slice(0, MAX_REASON)
    throw new ApiRefusal(answer.statusCode ?? 0, reason)
  }
  const change = async (path: string, how: Change) => void (await json(await ask(path, how)))
  return {
    get: async (path) => json(await ask(path)),
    patch: (path, kind, body) => change(path, { method: 'PATCH', type: `${kind}+json`, body }),
    send: (method, path, body) => change(path, { method, type: 'json', body }),
    async *watch(path, ending) {
      const signal = AbortSignal.any([stopping, ending])
      const answer = await ask(path, undefined, WATCH_SILENCE_MS, signal)
      using _ = atEndNow(() => answer.destroy())
      yield* readJsonLines(answer, (raw) => raw)
    },
  }
}

/** The namespace of this pod. */
export function readNamespace(account: string = SERVICE_ACCOUNT): string {
  return tryReadFile(join(account, 'namespace'))?.trim() ?? 'default'
}
