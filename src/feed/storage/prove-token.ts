import { createHmac } from 'node:crypto'
import { isSecret } from '../../frames/secret.js'

/** What a client computes from the token and the server's challenge. */
export function proveToken(token: string, challenge: string): string {
  return createHmac('sha256', token).update(`dscb1:${challenge}`).digest('hex')
}

/** Whether `proof` is what the token and the challenge give; see `isSecret`. */
export function isProof(proof: string, token: string, challenge: string): boolean {
  return isSecret(proof, proveToken(token, challenge))
}
