import { readFile } from 'node:fs/promises'
import { DscError } from '../../failure/dsc-error.js'
import { isSecret } from '../../frames/secret.js'
import { formatHostPort, type HostPort, isLoopback } from '../../model/host-port.js'
import { isLinkGood } from './page-link.js'

/** Minimum length of a token: a shorter one can be guessed. */
const MIN_TOKEN_CHARACTERS = 16
/** Characters that an HTTP header cannot hold. */
const UNSAFE = /[^\t\x20-\x7e\x80-\xff]/

/** A token, and whether its holder may only read. */
export interface Token {
  readonly text: string
  readonly mayOnlyRead: boolean
}

/** The contents of a token file. */
export interface AgentTokens {
  /** The first token: the one that this machine shows to others. */
  readonly own: string
  /** All tokens that an agent here accepts, so that tokens can be changed one machine at a time. */
  readonly accepted: readonly Token[]
}

/**
 * Reads a token file: one token per line, the machine's own first; `read <token>` is for clients that may fetch copies
 * but not prepare any. Rejects with CONFIG_INVALID if there is no token, or one is too short.
 */
export async function readTokens(tokenFile: string): Promise<AgentTokens> {
  const hint = `umask 077; head -c 32 /dev/urandom | base64 > ${tokenFile}`
  let lines: readonly string[]
  try {
    lines = (await readFile(tokenFile, 'utf8')).split('\n').map((line) => line.trim())
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new DscError('CONFIG_INVALID', `agent.tokenFile: cannot read ${tokenFile} (${code})`, {
      hint,
      cause: error,
    })
  }
  const accepted = lines.filter((line) => line !== '').map(parseToken)
  const unsafe = accepted.map(({ text }) => UNSAFE.exec(text)?.[0]).find((found) => found !== undefined)
  if (unsafe !== undefined)
    throw new DscError(
      'CONFIG_INVALID',
      `agent.tokenFile: ${tokenFile} holds a token with ${JSON.stringify(unsafe)} (U+${unsafe.charCodeAt(0).toString(16).padStart(4, '0').toUpperCase()}), which HTTP does not transport`,
      { hint },
    )
  const shortest = Math.min(...accepted.map(({ text }) => text.length))
  if (accepted[0] !== undefined && shortest >= MIN_TOKEN_CHARACTERS)
    return { own: accepted[0].text, accepted }
  const found = accepted.length === 0 ? 'nothing' : `a token of ${shortest} characters`
  throw new DscError(
    'CONFIG_INVALID',
    `agent.tokenFile: ${tokenFile} holds ${found}, expected at least ${MIN_TOKEN_CHARACTERS} characters`,
    { hint },
  )
}

function parseToken(line: string): Token {
  const text = /^read\s+(\S.*)$/.exec(line)?.[1]
  return text === undefined ? { text: line, mayOnlyRead: false } : { text, mayOnlyRead: true }
}

/** Refuses to listen where other machines could read datasets without a token. */
export function requireProtection(listen: HostPort, tokens: AgentTokens | undefined): void {
  if (tokens !== undefined || isLoopback(listen.host)) return
  throw new DscError(
    'AGENT_UNSAFE',
    `agent.listen is ${formatHostPort(listen)}, which other machines reach, and there is no token`,
    { hint: 'set agent.tokenFile in dsc.yaml to a file with a secret that all agents share' },
  )
}

/** The rights of a request. `page`: view the agent's page, as anybody with a link can. */
export type Permission = 'all' | 'read' | 'page' | 'metrics' | 'nothing'

/** The rights of a request with this `Authorization` header. Takes as long for a nearly right token as for any. */
export function judgeToken(header: string | undefined, tokens: readonly Token[] | undefined): Permission {
  if (tokens === undefined) return 'all'
  const right = tokens.filter(({ text }) => isSecret(header ?? '', `Bearer ${text}`))
  if (right.length > 0) return right.every(({ mayOnlyRead }) => mayOnlyRead) ? 'read' : 'all'
  const link = /^Bearer (link:.{1,100})$/.exec(header ?? '')?.[1]
  const texts = tokens.map(({ text }) => text)
  return link !== undefined && isLinkGood(link, texts, Date.now()) ? 'page' : 'nothing'
}
