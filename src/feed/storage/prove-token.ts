import { createHmac } from 'node:crypto'
import { isSecret } from '../../frames/secret.js'

/** Computes a client's answer to the server's challenge from the token. */
export function proveToken(token: string, challenge: string): string {
  return createHmac('sha256', token).update(`dscb1:${challenge}`).digest('hex')
}

/** Whether `proof` matches the token and the challenge; see `isSecret`. */
export function isProof(proof: string, token: string, challenge: string): boolean {
  return isSecret(proof, proveToken(token, challenge))
}
