import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { AgentTokens } from '../authorize.js'
import { findGatewaySecrets } from './gateway-keys.js'
import { isLocalUser, type LocalUsers } from './local-users.js'
import { S3Error } from './s3-request.js'
import { isSigned, verifySignature } from './verify-signature.js'

/** Decides who is answered: whoever signs with a key that dsc gave out, and local users who are trusted. */
export class GatewayAccess {
  readonly #tokens: AgentTokens | undefined
  readonly #users: LocalUsers
  readonly #trusted = new WeakMap<Socket, boolean>()

  constructor(options: { readonly tokens: AgentTokens | undefined; readonly users: LocalUsers }) {
    this.#tokens = options.tokens
    this.#users = options.users
  }

  /** Rejects with an S3Error unless the request is signed with a key of ours, or comes from a user whom it serves. */
  async authorize({ method = '', url = '', headers, socket }: IncomingMessage): Promise<void> {
    // Clients sign with whatever keys they find: where local users are trusted, theirs need not be ours.
    if (await this.isTrusted(socket)) return
    const tokens = this.#tokens
    if (!isSigned({ method, url, headers })) {
      const who = this.#users === 'all' ? 'users of this machine' : 'users whom agent.gateway.users names'
      throw new S3Error(
        { code: 'AccessDenied', status: 403 },
        `unsigned requests are answered for ${who}, over loopback; \`dsc gateway key\` gives a key to sign with`,
      )
    }
    if (tokens === undefined)
      throw new S3Error(
        { code: 'InvalidAccessKeyId', status: 403 },
        'this gateway gives out no keys: it has no agent.tokenFile',
      )
    const findSecrets = (accessKeyId: string) => findGatewaySecrets(tokens.accepted, accessKeyId)
    verifySignature({ method, url, headers }, findSecrets, Date.now())
  }

  /** Whether a connection's unsigned requests are answered; found out at its first. */
  async isTrusted(socket: Socket): Promise<boolean> {
    const known = this.#trusted.get(socket)
    if (known !== undefined) return known
    const isTrusted = await isLocalUser(socket, this.#users)
    this.#trusted.set(socket, isTrusted)
    return isTrusted
  }
}
