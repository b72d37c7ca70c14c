import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { BoundedMap } from '../../model/bounded-map.js'
import type { AgentTokens } from '../server/authorize.js'
import { findLocalUser, isLocalUser, isLocalUserAtOnce, type LocalUsers } from '../server/local-users.js'
import { findGatewaySecrets, findTokenHolder, isGatewayKey, nameOfKey } from './gateway-keys.js'
import type { GatewayUser } from './gateway-readers.js'
import { S3Error } from './s3-request.js'
import { findAccessKey, isSigned, verifySignature } from './verify-signature.js'

/** Maximum number of cached secrets; beyond it, some are derived again. */
const MAX_SECRETS = 256

/** Headers that proxies add: the connection then belongs to the proxy, not to the client. */
const FORWARDED = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]

/**
 * Whether a request comes through a proxy, or from another site's page in a local browser: neither gets the rights of
 * the connection's owner.
 */
function isFromElsewhere(headers: IncomingHttpHeaders): boolean {
  if (FORWARDED.some((name) => headers[name] !== undefined)) return true
  const { origin, host } = headers
  if (origin !== undefined && URL.parse(origin)?.host !== host) return true
  const site = headers['sec-fetch-site']
  return site !== undefined && site !== 'same-origin' && site !== 'none'
}

/** Decides which requests to answer: those signed with a key that dsc gave out, and those of trusted local users. */
export class GatewayAccess {
  readonly #tokens: AgentTokens | undefined
  readonly #users: LocalUsers
  readonly #trusted = new WeakMap<Socket, boolean>()
  readonly #secrets = new BoundedMap<string, readonly string[]>(MAX_SECRETS)

  constructor(options: { readonly tokens: AgentTokens | undefined; readonly users: LocalUsers }) {
    this.#tokens = options.tokens
    this.#users = options.users
  }

  /** Rejects with an S3Error unless the request is signed with one of our keys or comes from a trusted local user. */
  async authorize(request: IncomingMessage): Promise<void> {
    if (isFromElsewhere(request.headers)) {
      this.#requireSignature(request)
      return
    }
    const known = this.#trusted.get(request.socket)
    if (known === true) return
    // Looking up a connection's owner costs more than a signature; clients without our key sign with any key.
    if (known === undefined && !this.#isSignedByUs(request) && (await this.isTrusted(request))) return
    try {
      this.#requireSignature(request)
    } catch (error) {
      if (!(await this.isTrusted(request))) throw error
    }
  }

  /** Does the same as `authorize`, synchronously; false: only `authorize` can tell, or it refuses. */
  isAuthorized(request: IncomingMessage): boolean {
    const { socket, headers } = request
    const known = this.#trusted.get(socket) ?? isLocalUserAtOnce(socket, this.#users)
    if (known === true && !isFromElsewhere(headers)) return true
    if (!this.#isSignedByUs(request)) return false
    this.#requireSignature(request)
    return true
  }

  /** Whether unsigned requests are answered; looks up the connection's owner at its first request. */
  async isTrusted({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): Promise<boolean> {
    if (isFromElsewhere(headers)) return false
    const known = this.#trusted.get(socket)
    if (known !== undefined) return known
    const isTrusted = await isLocalUser(socket, this.#users)
    this.#trusted.set(socket, isTrusted)
    return isTrusted
  }

  /** Finds the user of a request, for datasets with readers; undefined: this machine does not know them. */
  async identify(request: IncomingMessage): Promise<GatewayUser | undefined> {
    const { url = '', headers, socket } = request
    if (this.#isSignedByUs(request)) {
      this.#requireSignature(request)
      return { kind: 'key', name: nameOfKey(findAccessKey({ url, headers })!) }
    }
    if (headers.authorization?.startsWith('Bearer ')) {
      const holder = findTokenHolder(headers.authorization, this.#tokens)
      if (holder) return holder
    }
    const uid = isFromElsewhere(headers) ? undefined : await findLocalUser(socket)
    return uid === undefined ? undefined : { kind: 'uid', uid }
  }

  /** Whether the request claims a key that dsc gave out. */
  #isSignedByUs({ url = '', headers }: IncomingMessage): boolean {
    return this.#tokens !== undefined && isGatewayKey(findAccessKey({ url, headers }) ?? '')
  }

  #requireSignature({ method = '', url = '', headers }: IncomingMessage): void {
    if (!isSigned({ method, url, headers })) {
      const who = this.#users === 'all' ? 'users of this machine' : 'users whom agent.gateway.users names'
      throw new S3Error(
        'AccessDenied',
        `unsigned requests are answered for ${who}, over loopback and through no proxy; \`dsc gateway key\` gives a key to sign with`,
      )
    }
    if (this.#tokens === undefined)
      throw new S3Error('InvalidAccessKeyId', 'this gateway gives out no keys: it has no agent.tokenFile')
    verifySignature({ method, url, headers }, (accessKeyId) => this.#findSecrets(accessKeyId), Date.now())
  }

  #findSecrets(accessKeyId: string): readonly string[] {
    return this.#secrets.getOrMake(accessKeyId, () =>
      findGatewaySecrets(this.#tokens?.accepted ?? [], accessKeyId),
    )
  }
}
