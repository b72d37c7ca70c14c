import { createHmac } from 'node:crypto'
import { isSecret } from '../../frames/secret.js'
import type { Token } from './authorize.js'

/** How long a pass is good for, in ms. A feed asks for the next one when half of it is over. */
export const PASS_MS = 600_000

const FORM = /^(\d{1,15})\.([0-9a-zA-Z-]{1,64})\.(\d{1,16}@[!-~]{1,768})$/

/** Permission to read the samples of one copy, for a limited time: all that a user without the agents' token gets. */
export interface CopyPass {
  readonly copyId: string
  /** The holder, `uid@node`: the user as the service that gave the pass knows them. */
  readonly by: string
  /** Unix epoch in ms, by the record's clock. */
  readonly expiresAtMs: number
}

/** A pass as somebody shows it, and the signature that each right token would have given it. */
export interface ShownPass {
  readonly pass: CopyPass
  readonly signatures: readonly string[]
}

/**
 * Signs a pass with the agents' token, so that every agent which knows the token accepts it. The last part is a secret:
 * storage nodes are shown the rest, and a proof of it.
 */
export function signPass(token: string, pass: CopyPass): string {
  const name = formatPass(pass)
  return `pass:${name}.${sign(token, name)}`
}

/** Names the user of a node in a pass. */
export function nameHolder(uid: number, node: string): string {
  return `${uid}@${encodeURIComponent(node)}`
}

/** Reads a pass without its signature. Undefined if it is for another copy, or not valid now. */
export function openPass(
  name: string,
  {
    copyId,
    tokens,
    nowMs,
  }: { readonly copyId: string; readonly tokens: readonly Token[]; readonly nowMs: number },
): ShownPass | undefined {
  const [, seconds = '', wanted, by = ''] = FORM.exec(name) ?? []
  const expiresAtMs = Number(seconds) * 1000
  if (wanted !== copyId || expiresAtMs <= nowMs || expiresAtMs > nowMs + 2 * PASS_MS) return undefined
  const signatures = tokens.filter(({ mayOnlyRead }) => !mayOnlyRead).map(({ text }) => sign(text, name))
  return { pass: { copyId, by, expiresAtMs }, signatures }
}

/** The pass in an `Authorization` header if one of the tokens signed it; takes as long for a nearly right one. */
export function judgePass(
  header: string | undefined,
  asked: Parameters<typeof openPass>[1],
): CopyPass | undefined {
  const [, name = '', signature = ''] =
    /^Bearer pass:(.{1,1000})\.([A-Za-z0-9_-]{43})$/.exec(header ?? '') ?? []
  const shown = openPass(name, asked)
  return shown?.signatures.filter((right) => isSecret(signature, right)).length ? shown.pass : undefined
}

function formatPass({ copyId, by, expiresAtMs }: CopyPass): string {
  return `${Math.floor(expiresAtMs / 1000)}.${copyId}.${by}`
}

function sign(token: string, name: string): string {
  return createHmac('sha256', token).update(`dsc copy pass 1\n${name}`).digest('base64url')
}
