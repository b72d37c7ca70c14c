import { DscError, type FailureCode } from '../../../failure/dsc-error.js'
import { SourceFailure } from '../../../failure/source-failure.js'

/** An answer of an S3 server that is no success. */
interface S3Answer {
  /** What was asked for, for the message: `s3://bucket/key`. */
  readonly what: string
  readonly status: number
  /** `<Code>` of the answer, or empty. */
  readonly code: string
  readonly message: string
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Unix epoch, ms: a Retry-After may be a date. */
  readonly nowMs: number
}

const THROTTLE_CODES = new Set([
  'SlowDown',
  'Throttling',
  'ThrottlingException',
  'RequestLimitExceeded',
  'TooManyRequests',
  'BandwidthLimitExceeded',
])
const STALE_CREDENTIAL_CODES = new Set(['ExpiredToken', 'TokenRefreshRequired', 'RequestTimeTooSkewed'])
/** Some servers answer these with 404; the last is versitygw's word for an unknown key. */
const DENIED_CODES = new Set([
  'AccessDenied',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'XAdminUserNotFound',
])
const REGION_CODES = new Set([
  'PermanentRedirect',
  'AuthorizationHeaderMalformed',
  'IllegalLocationConstraintException',
])

/** What an answer means: a failure, as a sentence, and what to do. */
interface Meaning {
  readonly code: FailureCode
  readonly sentence: string
  readonly hint: string
  readonly isTransient: boolean
}

/** Turns an S3 error answer into the failure a user meets. */
export function describeAnswer(answer: S3Answer): SourceFailure {
  const { what, status } = answer
  const { code, sentence, hint, isTransient } = interpret(answer)
  const found = `${status}${answer.code === '' ? '' : ` ${answer.code}`}${answer.message === '' ? '' : `: ${answer.message.slice(0, 300)}`}`
  const retryAfterMs = readRetryAfterMs(answer)
  return new SourceFailure(code, `${what}: ${sentence} (the server answered ${found})`, {
    isTransient,
    hint,
    retryAfterMs,
  })
}

function interpret({ status, code, headers }: S3Answer): Meaning {
  const region = headerText(headers['x-amz-bucket-region'])
  if ((status >= 300 && status < 400) || REGION_CODES.has(code))
    return {
      code: 'SOURCE_UNREACHABLE',
      sentence: 'the bucket is in another region or at another endpoint',
      hint: region ? `set region: ${region}` : 'check region, endpoint and pathStyle of the dataset',
      isTransient: false,
    }
  if (status === 429 || THROTTLE_CODES.has(code) || (status === 503 && code === ''))
    return {
      code: 'SOURCE_THROTTLED',
      sentence: 'the source asks to slow down',
      hint: 'try again later, or lower the concurrency',
      isTransient: true,
    }
  if (status === 412 || status === 416)
    // 416: it no longer reaches this far
    return {
      code: 'SOURCE_CHANGED',
      sentence: 'the object changed while it was read',
      hint: 'dsc prepare <dataset> --refresh',
      isTransient: false,
    }
  if (status === 401 || status === 403 || DENIED_CODES.has(code))
    return {
      code: 'SOURCE_DENIED',
      sentence: 'access denied',
      hint:
        code === 'RequestTimeTooSkewed'
          ? 'set this machine’s clock'
          : 'check the credentials (AWS_PROFILE, profile:), the bucket policy, or set anonymous: true for public data',
      isTransient: STALE_CREDENTIAL_CODES.has(code),
    }
  return interpretStatus(status, code)
}

function interpretStatus(status: number, code: string): Meaning {
  if (status === 404 || status === 410) {
    const [sentence, hint] =
      code === 'NoSuchBucket'
        ? ['the bucket does not exist', 'check the bucket name and the endpoint of the dataset']
        : [
            'the object does not exist',
            'it may have been deleted since it was listed: dsc prepare <dataset> --refresh',
          ]
    return { code: 'SOURCE_NOT_FOUND', sentence, hint, isTransient: false }
  }
  if (status >= 500 || status === 408 || code === 'RequestTimeout')
    return {
      code: 'SOURCE_UNREACHABLE',
      sentence: 'the server failed',
      hint: 'try again later, or ask who runs the server',
      isTransient: true,
    }
  return {
    code: 'SOURCE_UNREACHABLE',
    sentence: 'the server refuses the request',
    hint: 'check endpoint, region and pathStyle',
    isTransient: false,
  }
}

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

interface BrokenRequest {
  readonly what: string
  readonly origin: string
  readonly bucket?: string | undefined
  /** URL of the proxy on the way. */
  readonly proxy?: string | undefined
  /** Undefined: no answer began. */
  readonly receivedBytes: number | undefined
  readonly expectedBytes: number
  readonly stallTimeoutMs: number
}

/** Turns a failed connection into the failure a user meets. */
export function describeConnectionError(error: unknown, request: BrokenRequest): SourceFailure {
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
  readonly hint: string
}

/** Why nothing, or nothing more, comes from the server. */
function explainUnreachable(code: string, cause: string, request: BrokenRequest): Unreachable {
  const server = serverOf(request)
  const trust = explainTrust(code)
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
      // Of a proxy, 5xx say that it could not get through just now.
      isTransient: /answered 5|closed/.test(cause),
      hint: 'check HTTPS_PROXY and its password; NO_PROXY lists the hosts that are reached without it',
    }
  const isName = code === 'ENOTFOUND' || code === 'EAI_AGAIN'
  return {
    problem: CONNECT_CODES.has(code)
      ? `cannot connect to ${server} (${cause})`
      : `the connection to ${server} broke (${cause})`,
    isTransient: !isName || code === 'EAI_AGAIN',
    hint: isBucketHost(request.origin, request.bucket)
      ? 'the bucket’s name was put before the endpoint’s: set pathStyle: true if that host does not exist'
      : isName
        ? 'check the host name; a server other than AWS needs `endpoint:` in dsc.yaml (or AWS_ENDPOINT_URL)'
        : 'check that the endpoint is up and reachable from this node',
  }
}

function serverOf({ origin, proxy }: BrokenRequest): string {
  return proxy ? `${origin} (through the proxy ${proxy})` : origin
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Whether the host is one that AWS would have for the bucket, and few other servers do. */
function isBucketHost(origin: string, bucket: string | undefined): boolean {
  const { hostname } = new URL(origin)
  return bucket !== undefined && hostname.startsWith(`${bucket}.`) && !hostname.endsWith('.amazonaws.com')
}

/** What is wrong when a server does not prove who it is; undefined for any other failure. */
function explainTrust(code: string): { readonly problem: string; readonly hint: string } | undefined {
  switch (code) {
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'CERT_UNTRUSTED':
      return {
        problem: 'shows a certificate of an authority that this node does not trust',
        hint: 'set AWS_CA_BUNDLE, or ca_bundle of the AWS profile, to a PEM file with that authority’s certificate',
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

/** Turns the failure of a credential chain that found nothing into SOURCE_DENIED; anything else comes back as it is. */
export function describeMissingCredentials(error: unknown, what: string): unknown {
  const { name, message } = error as { readonly name?: unknown; readonly message?: unknown }
  if (name !== 'CredentialsProviderError' && name !== 'TokenProviderError') return error
  return new DscError('SOURCE_DENIED', `${what}: no AWS credentials (${String(message)})`, {
    cause: error,
    hint: 'set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or anonymous: true for public data',
  })
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

function readRetryAfterMs(answer: S3Answer): number | undefined {
  const text = headerText(answer.headers['retry-after'])
  if (text === undefined || text === '') return undefined
  const seconds = Number(text)
  const delayMs = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(text) - answer.nowMs
  return Number.isFinite(delayMs) && delayMs > 0 ? delayMs : undefined
}

function headerText(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0]
}
