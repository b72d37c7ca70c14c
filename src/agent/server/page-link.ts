import { createHmac } from 'node:crypto'
import { isSecret } from '../../frames/secret.js'

/** Maximum lifetime of a link to the page: 30 days, in ms. */
export const MAX_LINK_MS = 30 * 86_400_000

/** Prefix that tells a link's bearer from a token. */
const PREFIX = 'link:'
const FORM = /^link:(\d{1,15})\.([A-Za-z0-9_-]{43})$/

/**
 * Signs a bearer that opens the page, and nothing else, until `expiresAtMs` (Unix epoch). It is signed with the agents'
 * token, so every agent that knows the token accepts it, and revoking a token revokes its links.
 */
export function signLink(token: string, expiresAtMs: number): string {
  const seconds = Math.floor(expiresAtMs / 1000)
  return `${PREFIX}${seconds}.${sign(token, seconds).toString('base64url')}`
}

/** Whether one of `tokens` signed the link, and it has not expired. Takes as long for a nearly right one as for any. */
export function isLinkGood(link: string, tokens: readonly string[], nowMs: number): boolean {
  const [, written = '', signature = ''] = FORM.exec(link) ?? []
  const seconds = Number(written)
  if (written === '' || seconds * 1000 <= nowMs || seconds * 1000 > nowMs + MAX_LINK_MS) return false
  const shown = Buffer.from(signature, 'base64url')
  return tokens.filter((token) => isSecret(shown, sign(token, seconds))).length > 0
}

function sign(token: string, seconds: number): Buffer {
  return createHmac('sha256', token).update(`dsc page until ${seconds}`).digest()
}
