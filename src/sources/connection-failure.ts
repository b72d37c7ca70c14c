import { SourceFailure } from '../failure/source-failure.js'

const CONNECT_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'ETIMEDOUT',
  'HTTP_CONNECT_TIMEOUT',
])
const STALL_CODES = new Set(['HTTP_STALLED'])
const TRUNCATION_CODES = new Set(['HTTP_CLOSED'])

/** A request that got no answer, or an incomplete one. */
export interface BrokenRequest {
  /** The requested resource, for the message: `s3://bucket/key`. */
  readonly what: string
  /** `https://host:port`. */
  readonly origin: string
  /** URL of the proxy in between. */
  readonly proxy?: string | undefined
  /** Undefined: no answer began. */
  readonly receivedBytes: number | undefined
  readonly expectedBytes: number
  readonly stallTimeoutMs: number
  readonly hints: ConnectionHints
}

/** Hints for a server that cannot be reached, for one kind of source. */
interface ConnectionHints {
  /** For a certificate signed by an untrusted authority. */
  readonly authority: string
  /** For an unknown host name. */
  readonly name: string
  /** For a host where nothing answers. */
  readonly host?: string | undefined
  /** For an answer that is longer than any that is expected. */
  readonly length?: string | undefined
}

/** Turns a failed connection into the failure shown to the user. */
export function describeBrokenRequest(error: unknown, request: BrokenRequest): SourceFailure {
  const { what, receivedBytes, expectedBytes } = request
  const code = findCode(error)
  if (STALL_CODES.has(code))
    return new SourceFailure(
      'SOURCE_STALLED',
      `${what}: no byte from ${serverOf(request)} for ${request.stallTimeoutMs / 1000} s, ${receivedBytes ?? 0} of ${expectedBytes} bytes received`,
      {
        isTransient: true,
        cause: error,
        hint: 'check the network to the endpoint, or raise the stall timeout',
      },
    )
  if (receivedBytes !== undefined && TRUNCATION_CODES.has(code))
    return new SourceFailure(
      'SOURCE_TRUNCATED',
      `${what}: expected ${expectedBytes} bytes, received ${receivedBytes} before ${serverOf(request)} closed the connection`,
      { isTransient: true, cause: error, hint: 'try again: finished parts are kept' },
    )
  const { problem, ...options } = explainUnreachable(code, messageOf(error), request)
  return new SourceFailure('SOURCE_UNREACHABLE', `${what}: ${problem}`, { ...options, cause: error })
}

interface Unreachable {
  readonly problem: string
  readonly isTransient: boolean
  readonly isAway?: boolean
  readonly hint: string
}

/** Explains why the server sends nothing, or nothing more. */
function explainUnreachable(code: string, cause: string, request: BrokenRequest): Unreachable {
  const server = serverOf(request)
  const trust = explainTrust(code, request.hints)
  if (trust !== undefined)
    return { problem: `${server} ${trust.problem} (${cause})`, isTransient: false, hint: trust.hint }
  if (code === 'EPROTO' && cause.includes('wrong version number'))
    return {
      problem: `${server} does not speak TLS`,
      isTransient: false,
      hint: 'begin the endpoint with http:// if it is meant to be unencrypted',
    }
  if (code === 'HTTP_PROXY_REFUSED')
    return {
      problem: cause,
      // A 5xx from a proxy means that it could not get through just now.
      isTransient: /answered 5|closed/.test(cause),
      isAway: /answered 5|closed/.test(cause),
      hint: 'check HTTPS_PROXY and its password; NO_PROXY lists the hosts that are reached without it',
    }
  if (code === 'ENDLESS_ANSWER')
    return {
      problem: `the answer of ${server} is too long (${cause})`,
      isTransient: false,
      hint: request.hints.length ?? 'check the source’s URL and its endpoint',
    }
  if (code === 'LOCAL_ADDRESS')
    return {
      problem: `${cause}, where only a source of that name may lead`,
      isTransient: false,
      hint: 'use that URL as a source of its own, if you mean this node',
    }
  const isName = code === 'ENOTFOUND' || code === 'EAI_AGAIN'
  return {
    problem: CONNECT_CODES.has(code)
      ? `cannot connect to ${server} (${cause})`
      : `the connection to ${server} broke (${cause})`,
    isTransient: true,
    isAway: true,
    hint:
      request.hints.host ??
      (isName ? request.hints.name : 'check that the endpoint is up and reachable from this node'),
  }
}

function serverOf({ origin, proxy }: BrokenRequest): string {
  return proxy ? `${origin} (through the proxy ${proxy})` : origin
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Explains why a server's identity could not be verified; undefined for any other failure. */
function explainTrust(
  code: string,
  hints: ConnectionHints,
): { readonly problem: string; readonly hint: string } | undefined {
  switch (code) {
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'CERT_UNTRUSTED':
      return {
        problem: 'shows a certificate of an authority that this node does not trust',
        hint: hints.authority,
      }
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return {
        problem: 'shows a certificate for another host name',
        hint: 'write the endpoint with a name that the certificate has',
      }
    case 'CERT_HAS_EXPIRED':
    case 'CERT_NOT_YET_VALID':
      return {
        problem: 'shows a certificate that is not valid at present',
        hint: 'renew the server’s certificate; if it is valid, set this machine’s clock',
      }
    default:
      return undefined
  }
}

/** Finds the error code of a failed connection, also inside the causes and aggregates that clients wrap around it. */
function findCode(error: unknown): string {
  let current = error
  for (let depth = 0; depth < 5 && typeof current === 'object' && current !== null; depth += 1) {
    const { code, cause, errors } = current as { code?: unknown; cause?: unknown; errors?: unknown }
    if (typeof code === 'string') return code
    current = cause ?? (Array.isArray(errors) ? errors[0] : undefined)
  }
  return ''
}

/**
 * How long a server asks to be left alone, in ms: its answer's `retry-after`, in seconds or as a date (RFC 9110,
 * 10.2.3). `nowMs`: Unix epoch.
 */
export function readRetryAfterMs(answer: {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly nowMs: number
}): number | undefined {
  const text = headerText(answer.headers['retry-after'])
  if (text === undefined || text === '') return undefined
  const seconds = Number(text)
  const delayMs = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(text) - answer.nowMs
  return Number.isFinite(delayMs) && delayMs > 0 ? delayMs : undefined
}

/** First value of a header. */
export function headerText(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0]
}
