import { z } from 'zod'
import { isDscError } from '../../failure/dsc-error.js'
import { SourceFailure } from '../../failure/source-failure.js'
import type { Headers } from '../../http/answer-listener.js'
import type { OciUrl } from '../../model/source-url.js'
import { WebClient } from '../web-client.js'
import type { RegistryCredentials } from './registry-credentials.js'
import { speakRegistry } from './registry-failure.js'

/** A token lives 60 s unless its server says otherwise (distribution/specification, "Token Authentication"). */
const DEFAULT_LIFE_SECONDS = 60
/** A token is renewed when this share of its life is over. */
const USED_SHARE = 0.5
const FOR_EVER_MS = Number.POSITIVE_INFINITY

/** Headers that authorize a request, and how long they are valid. */
export interface Permit {
  readonly headers: Readonly<Record<string, string>>
  /** In milliseconds of `performance.now()` of the process. */
  readonly renewAtMs: number
}

/** Where a repository's blobs are. Plain data, so that it can be passed to a worker. */
export interface OciLocation {
  readonly url: OciUrl
  /** `https://host`, without a trailing slash. */
  readonly base: string
  readonly ca: string | undefined
}

interface RegistryAccess extends OciLocation {
  readonly findCredentials: () => Promise<RegistryCredentials | undefined>
}

const answer = z.looseObject({
  token: z.string().optional(),
  access_token: z.string().optional(),
  expires_in: z.number().positive().optional(),
})

/**
 * Obtains the right to pull a repository in the way that the registry's challenge demands: a token from the server that
 * it names (public repositories need no credentials there), the credentials themselves, or nothing. Keeps it while it
 * is valid.
 */
export class RegistryTokens {
  readonly #access: RegistryAccess
  #permit: Promise<Permit> | undefined
  #renewAtMs = FOR_EVER_MS

  constructor(access: RegistryAccess) {
    this.#access = access
  }

  permit = (): Promise<Permit> => {
    if (this.#permit !== undefined && performance.now() < this.#renewAtMs) return this.#permit
    this.#renewAtMs = FOR_EVER_MS
    const asked = obtain(this.#access)
    asked.then(
      ({ renewAtMs }) => {
        this.#renewAtMs = renewAtMs
      },
      () => {
        this.#permit = undefined
      },
    )
    this.#permit = asked
    return asked
  }
}

async function obtain(access: RegistryAccess): Promise<Permit> {
  const challenge = await findChallenge(access)
  if (challenge === undefined) return { headers: {}, renewAtMs: FOR_EVER_MS }
  const credentials = await access.findCredentials()
  const basic = credentials ? { authorization: `Basic ${encode(credentials)}` } : {}
  if (/^basic\b/i.test(challenge)) return { headers: basic, renewAtMs: FOR_EVER_MS }
  try {
    return await askForToken(access, challenge, basic)
  } catch (error) {
    if (credentials === undefined || !isDscError(error, 'SOURCE_DENIED')) throw error
    // A login that has run out must not keep a public repository away.
    return askForToken(access, challenge, {}).catch(() => {
      throw error
    })
  }
}

function encode({ username, password }: RegistryCredentials): string {
  return Buffer.from(`${username}:${password}`).toString('base64')
}

/** The challenge of a registry that asks for credentials or a token; undefined: it is open to everybody. */
async function findChallenge({ base, ca, url }: RegistryAccess): Promise<string | undefined> {
  const dialect = speakRegistry(url.registry)
  let headers: Headers = {}
  const client = new WebClient({ connections: 1, ca, authorize: () => ({}), home: base })
  try {
    await client.readText(`${base}/v2/`, {
      what: `oci://${url.registry}`,
      dialect: {
        ...dialect,
        describeAnswer: (refused) => {
          headers = refused.headers
          return dialect.describeAnswer(refused)
        },
      },
    })
    return undefined
  } catch (error) {
    const challenge = headers['www-authenticate']
    if (challenge === undefined) throw error
    return challenge
  } finally {
    client.close()
  }
}

async function askForToken(
  { url, base, ca }: RegistryAccess,
  challenge: string,
  basic: Readonly<Record<string, string>>,
): Promise<Permit> {
  const { realm = '', service, scope } = readParameters(challenge)
  const server = URL.parse(realm, base)
  // A challenge must not make us send credentials in clear text.
  if (server === null || (server.protocol !== 'https:' && !base.startsWith('http:')))
    throw unusable(url, `its challenge names no https:// server of tokens: ${challenge.slice(0, 200)}`)
  if (service !== undefined) server.searchParams.set('service', service)
  server.searchParams.set('scope', `repository:${url.repository}:pull`)
  // One that names no resource means all of the registry; others name what /v2/ happens to need.
  if (scope && !scope.includes(':')) server.searchParams.append('scope', scope)
  const client = new WebClient({ connections: 1, ca, authorize: () => basic, home: base })
  try {
    const what = `oci://${url.registry}/${url.repository}`
    const { body } = await client.readText(server.href, { what, dialect: speakRegistry(url.registry) })
    const parsed = answer.safeParse(JSON.parse(body.toString('utf8')))
    const token = parsed.data?.token ?? parsed.data?.access_token
    if (token === undefined) throw unusable(url, `${server.host} answered without a token`)
    const lifeMs = 1000 * (parsed.data?.expires_in ?? DEFAULT_LIFE_SECONDS)
    return {
      headers: { authorization: `Bearer ${token}` },
      renewAtMs: performance.now() + USED_SHARE * lifeMs,
    }
  } catch (error) {
    if (error instanceof SyntaxError) throw unusable(url, `${server.host} answered with what is no JSON`)
    throw error
  } finally {
    client.close()
  }
}

/** `Bearer realm="…",service="…"` (RFC 9110, 11.6.1). */
function readParameters(challenge: string): Readonly<Record<string, string | undefined>> {
  const found: Record<string, string> = {}
  for (const [, name = '', quoted, plain] of challenge.matchAll(/(\w+)=(?:"([^"]*)"|([^\s,"]+))/g))
    found[name.toLowerCase()] = quoted ?? plain ?? ''
  return found
}

function unusable(url: OciUrl, problem: string): SourceFailure {
  return new SourceFailure('SOURCE_UNREACHABLE', `oci://${url.registry}: ${problem}`, {
    hint: 'check the registry’s configuration of tokens',
  })
}
