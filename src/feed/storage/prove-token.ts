import { createHmac } from 'node:crypto'
import { isSecret } from '../../frames/secret.js'

/** A client's answer to the server's challenge. */
interface Proof {
  /** The pass in whose name it speaks; absent: it knows the token. */
  readonly pass?: string
  readonly mac: string
}

/** Proves to a server that this client has the token, or the pass: of that the last part is the secret. */
export function proveToken(token: string, challenge: string): Proof {
  const [, pass, secret = token] = /^pass:(.*)\.([^.]*)$/.exec(token) ?? []
  return { ...(pass !== undefined && { pass }), mac: sign(secret, challenge) }
}

/** Whether `proof` matches the secret and the challenge; see `isSecret`. */
export function isProof(proof: string, secret: string, challenge: string): boolean {
  return isSecret(proof, sign(secret, challenge))
}

function sign(secret: string, challenge: string): string {
  return createHmac('sha256', secret).update(`dscb1:${challenge}`).digest('hex')
}
