import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { json, text } from 'node:stream/consumers'
import { askOnce } from '../../http/ask-once.js'

/** Where kubelet puts what a pod's service account asks the API server with; the token changes every hour. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'
const CONNECT_MS = 5000
const SILENCE_MS = 10_000
const MAX_REASON = 300

/** The API server of the cluster that this process runs in. Its calls reject unless it does what they ask. */
export interface ApiServer {
  get(path: string): Promise<unknown>
  /** RFC 7386 changes the members that a patch names, RFC 6902 follows its steps. */
  patch(path: string, kind: 'merge-patch' | 'json-patch', patch: unknown): Promise<void>
}

/** The API server that this pod may ask; undefined: it has no service account, or it is no pod. */
export function findApiServer(
  environment: Readonly<Record<string, string | undefined>>,
  stopping: AbortSignal,
  account: string = SERVICE_ACCOUNT,
): ApiServer | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment
  const ca = tryRead(join(account, 'ca.crt'))
  if (!host || !port || ca === undefined) return undefined
  const origin = `https://${host.includes(':') ? `[${host}]` : host}:${port}`
  const ask = async (path: string, change?: { readonly kind: string; readonly patch: unknown }) => {
    const answer = await askOnce(`${origin}${path}`, {
      method: change ? 'PATCH' : 'GET',
      token: readFileSync(join(account, 'token'), 'utf8').trim(),
      headers: change ? { 'content-type': `application/${change.kind}+json` } : {},
      body: change && JSON.stringify(change.patch),
      ca,
      connectTimeoutMs: CONNECT_MS,
      silenceMs: SILENCE_MS,
      signal: stopping,
    })
    if (answer.statusCode === 200) return json(answer)
    const reason = (await text(answer)).slice(0, MAX_REASON)
    throw new Error(`the API server answers ${answer.statusCode}: ${reason}`)
  }
  return {
    get: (path) => ask(path),
    patch: async (path, kind, patch) => void (await ask(path, { kind, patch })),
  }
}

function tryRead(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
