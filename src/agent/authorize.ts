import { createHash, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { DscError } from '../failure/dsc-error.js'
import { formatListenAddress, type ListenAddress } from '../model/listen-address.js'

/** Fewer characters can be guessed. */
const LEAST_TOKEN_CHARACTERS = 16

/** Reads the token shared by all agents. Rejects with CONFIG_INVALID when it is missing or too short to be one. */
export async function readToken(tokenFile: string): Promise<string> {
  const hint = `umask 077; head -c 32 /dev/urandom | base64 > ${tokenFile}`
  let token: string
  try {
    token = (await readFile(tokenFile, 'utf8')).trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new DscError('CONFIG_INVALID', `agent.tokenFile: cannot read ${tokenFile} (${code})`, {
      hint,
      cause: error,
    })
  }
  if (token.length >= LEAST_TOKEN_CHARACTERS) return token
  throw new DscError(
    'CONFIG_INVALID',
    `agent.tokenFile: ${tokenFile} holds ${token.length} characters, expected at least ${LEAST_TOKEN_CHARACTERS}`,
    { hint },
  )
}

/** Refuses to listen where other machines could read datasets without a token. */
export function requireProtection(listen: ListenAddress, token: string | undefined): void {
  if (token !== undefined || isLoopback(listen.host)) return
  throw new DscError(
    'AGENT_UNSAFE',
    `agent.listen is ${formatListenAddress(listen)}, which other machines reach, and there is no token`,
    { hint: 'set agent.tokenFile in dsc.yaml to a file with a secret that all agents share' },
  )
}

function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}

/** Whether an `Authorization` header carries the token. Takes as long for a nearly right one as for any other. */
export function isAuthorized(header: string | undefined, token: string | undefined): boolean {
  if (token === undefined) return true
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(header ?? ''), digest(`Bearer ${token}`))
}
