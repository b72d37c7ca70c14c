import type { SourceFailure } from '../../failure/source-failure.js'
import {
  type BrokenRequest,
  describeBrokenRequest,
  headerText,
  readRetryAfterMs,
} from '../connection-failure.js'
import { failAs, type Refusal } from '../refusal.js'

/** An unsuccessful answer of an S3 server. */
interface S3Answer {
  /** The requested resource, for the message: `s3://bucket/key`. */
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
const STALE_CREDENTIAL_CODES = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'TokenRefreshRequired',
  'RequestTimeTooSkewed',
])
/** Some servers answer these with 404; XAdminUserNotFound is versitygw's code for an unknown access key. */
const DENIED_CODES = new Set([
  'AccessDenied',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'XAdminUserNotFound',
  'InvalidToken',
])
const REGION_CODES = new Set([
  'PermanentRedirect',
  'AuthorizationHeaderMalformed',
  'IllegalLocationConstraintException',
])

/** Turns an S3 error answer into the failure shown to the user. */
export function describeAnswer(answer: S3Answer): SourceFailure {
  const { what, status } = answer
  const found = `${status}${answer.code === '' ? '' : ` ${answer.code}`}${answer.message === '' ? '' : `: ${answer.message.slice(0, 300)}`}`
  const answered = `the server answered ${found}`
  return failAs(interpret(answer), { what, answered, retryAfterMs: readRetryAfterMs(answer) })
}

function interpret({ status, code, message, headers }: S3Answer): Refusal {
  const region = headerText(headers['x-amz-bucket-region'])
  if ((status >= 300 && status < 400) || REGION_CODES.has(code))
    return {
      code: 'SOURCE_UNREACHABLE',
      sentence: 'the bucket is in another region or at another endpoint',
      hint: region ? `set region: ${region}` : 'check region, endpoint and pathStyle of the dataset',
    }
  if (status === 429 || THROTTLE_CODES.has(code) || (status === 503 && code === ''))
    return {
      code: 'SOURCE_THROTTLED',
      sentence: 'the source asks to slow down',
      hint: 'try again later, or lower the concurrency',
      isTransient: true,
      isAway: status === 503 && code === '',
    }
  if (status === 412 || status === 416)
    // 416: the object has become shorter
    return {
      code: 'SOURCE_CHANGED',
      sentence: 'the object changed while it was read',
      hint: 'dsc prepare <dataset> --refresh',
    }
  const closed = explainClosed(code, message)
  if (closed) return { code: 'SOURCE_DENIED', ...closed }
  if (status === 401 || status === 403 || DENIED_CODES.has(code) || STALE_CREDENTIAL_CODES.has(code))
    return {
      code: 'SOURCE_DENIED',
      sentence: /Token/.test(code)
        ? 'the credentials have expired, or their token is not valid'
        : 'access denied',
      hint:
        code === 'RequestTimeTooSkewed'
          ? 'set this machine’s clock'
          : /Token/.test(code)
            ? 'get new credentials (aws sso login, or whoever gave AWS_SESSION_TOKEN)'
            : 'check the credentials (AWS_PROFILE, profile:), the bucket policy, or set anonymous: true for public data',
      isTransient: STALE_CREDENTIAL_CODES.has(code),
    }
  return interpretStatus(status, code)
}

/** Explains refusals that other credentials alone would not lift. */
function explainClosed(code: string, message: string): Pick<Refusal, 'sentence' | 'hint'> | undefined {
  if (code === 'InvalidObjectState')
    return {
      sentence: 'the object is archived and has to be restored before it can be read',
      hint: 'aws s3api restore-object, or leave it out by exclude:',
    }
  if (code.startsWith('KMS.') || /kms:Decrypt|KMS/.test(message))
    return {
      sentence: 'the key of KMS that the object is encrypted with may not be used',
      hint: 'allow kms:Decrypt on that key for these credentials, or enable the key',
    }
  if (/Server Side Encryption|customer.{0,20}(key|algorithm)|SSE-C/i.test(message))
    return {
      sentence: 'the object is encrypted with a key of its writer (SSE-C), which dsc cannot send',
      hint: 'copy it with encryption by the store (SSE-S3 or SSE-KMS), or leave it out by exclude:',
    }
  return undefined
}

function interpretStatus(status: number, code: string): Refusal {
  if (status === 404 || status === 410) {
    const [sentence, hint] =
      code === 'NoSuchBucket'
        ? ['the bucket does not exist', 'check the bucket name and the endpoint of the dataset']
        : [
            'the object does not exist',
            'it may have been deleted since it was listed: dsc prepare <dataset> --refresh',
          ]
    return { code: 'SOURCE_NOT_FOUND', sentence, hint }
  }
  if (status >= 500 || status === 408 || code === 'RequestTimeout')
    return {
      code: 'SOURCE_UNREACHABLE',
      sentence: 'the server failed',
      hint: 'try again later, or ask who runs the server',
      isTransient: true,
      isAway: status >= 502 && status <= 504,
    }
  return {
    code: 'SOURCE_UNREACHABLE',
    sentence: 'the server refuses the request',
    hint: 'check endpoint, region and pathStyle',
  }
}

/** Turns a failed connection to an S3 server into the failure shown to the user. */
export function describeConnectionError(
  error: unknown,
  request: Omit<BrokenRequest, 'hints'> & { readonly bucket?: string | undefined },
): SourceFailure {
  const { bucket, ...broken } = request
  return describeBrokenRequest(error, {
    ...broken,
    hints: {
      authority:
        'set AWS_CA_BUNDLE, or ca_bundle of the AWS profile, to a PEM file with that authority’s certificate',
      name: 'check the host name; a server other than AWS needs `endpoint:` in dsc.yaml (or AWS_ENDPOINT_URL)',
      host: isBucketHost(request.origin, bucket)
        ? 'the bucket’s name was put before the endpoint’s: set pathStyle: true if that host does not exist'
        : undefined,
    },
  })
}

/** Whether the host looks like AWS's own for the bucket, which few other servers have. */
function isBucketHost(origin: string, bucket: string | undefined): boolean {
  const { hostname } = new URL(origin)
  return bucket !== undefined && hostname.startsWith(`${bucket}.`) && !hostname.endsWith('.amazonaws.com')
}
