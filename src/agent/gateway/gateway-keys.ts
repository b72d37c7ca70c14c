import { createHmac } from 'node:crypto'
import { isSecret } from '../../frames/secret.js'
import { type AgentTokens, judgeToken, type Token } from '../server/authorize.js'
import type { GatewayUser } from './gateway-readers.js'

/** A key pair that S3 clients sign with. */
interface GatewayKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** Prefix of the name in an access key. */
const PREFIX = 'dsc-'
const NAME = /^[A-Za-z0-9._-]{1,64}$/

/**
 * Derives the key of a named user or job. The secret follows from the agents' token and the name, so every gateway of
 * the cluster knows it without communication; a new token voids all keys. Throws a RangeError unless the name is 1 to
 * 64 of `A-Z a-z 0-9 . _ -`.
 */
export function deriveGatewayKey(token: string, name: string): GatewayKey {
  if (!NAME.test(name))
    throw new RangeError(
      `expected a name of up to 64 letters, digits, '.', '_' and '-', found ${JSON.stringify(name.slice(0, 200))}`,
    )
  const accessKeyId = `${PREFIX}${name}`
  const secretAccessKey = createHmac('sha256', token)
    .update(`dsc gateway key 1\n${accessKeyId}`)
    .digest('base64url')
  return { accessKeyId, secretAccessKey }
}

/** Whether dsc could have given out this access key. */
export function isGatewayKey(accessKeyId: string): boolean {
  return accessKeyId.startsWith(PREFIX) && NAME.test(nameOfKey(accessKeyId))
}

/** The name in an access key of ours. */
export function nameOfKey(accessKeyId: string): string {
  return accessKeyId.slice(PREFIX.length)
}

/** The possible secrets of an access key under the accepted tokens; empty unless the key is ours. */
export function findGatewaySecrets(
  tokens: readonly Pick<Token, 'text'>[],
  accessKeyId: string,
): readonly string[] {
  if (!isGatewayKey(accessKeyId)) return []
  const name = nameOfKey(accessKeyId)
  return tokens.map(({ text }) => deriveGatewayKey(text, name).secretAccessKey)
}

/** The holder of a token of the agents, or of a key of ours as `id:secret`; undefined: the header has neither. */
export function findTokenHolder(
  header: string | undefined,
  tokens: AgentTokens | undefined,
): GatewayUser | undefined {
  if (tokens === undefined) return undefined
  if (['all', 'read'].includes(judgeToken(header, tokens.accepted))) return { kind: 'all' }
  const [, id = '', secret = ''] = /^Bearer (dsc-[^:]+):(.+)$/.exec(header ?? '') ?? []
  const isRight = findGatewaySecrets(tokens.accepted, id).some((known) => isSecret(secret, known))
  return isRight ? { kind: 'key', name: nameOfKey(id) } : undefined
}
