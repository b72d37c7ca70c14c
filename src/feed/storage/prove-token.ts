import { createHmac, timingSafeEqual } from 'node:crypto'

/** What a client computes from the token and the server's challenge. */
export function proveToken(token: string, challenge: string): string {
  return createHmac('sha256', token).update(`dscb1:${challenge}`).digest('hex')
}

/** Whether `proof` is what the token and the challenge give; takes the same time for every wrong one. */
export function isProof(proof: string, token: string, challenge: string): boolean {
  const expected = Buffer.from(proveToken(token, challenge))
  const given = Buffer.from(proof)
  return given.length === expected.length && timingSafeEqual(given, expected)
}
