import { hash } from 'node:crypto'
import { isSecret } from '../../frames/secret.js'
import { BoundedMap } from '../../model/bounded-map.js'
import { HmacKey } from './hmac-key.js'
import { S3Error, SIGN_V4 } from './s3-request.js'

/**
 * Server-side check of Signature Version 4: "Authenticating Requests: Using the Authorization Header" and "… Using
 * Query Parameters" of the S3 API reference. Libraries sign requests, but none verifies them, hence this module.
 */

const ALGORITHM = 'AWS4-HMAC-SHA256'
/** How far a client's clock may be off, in ms; the same as AWS. */
const MAX_SKEW_MS = 15 * 60_000
const MAX_PRESIGNED_SECONDS = 7 * 24 * 3600

/** The parts of a request that its signature covers. */
export interface SignedRequest {
  readonly method: string
  /** As sent: path and query, percent-encoded. */
  readonly url: string
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** The claims of a signature. */
interface Claim {
  readonly accessKeyId: string
  readonly scope: string
  readonly signedHeaders: readonly string[]
  readonly signature: string
  /** `YYYYMMDDTHHMMSSZ`. */
  readonly date: string
  readonly payloadHash: string
}

/** Whether a request carries a signature, in its header or its URL. */
export function isSigned(request: SignedRequest): boolean {
  return request.headers.authorization !== undefined || /[?&]X-Amz-Signature=/i.test(request.url)
}

/** The access key that a request claims; undefined if it has no readable signature. */
export function findAccessKey({ url, headers }: Pick<SignedRequest, 'url' | 'headers'>): string | undefined {
  const { authorization } = headers
  const claimed =
    typeof authorization === 'string'
      ? /\bCredential=([^/,\s]+)/.exec(authorization)?.[1]
      : /[?&]X-Amz-Credential=([^/%&]+)/.exec(url)?.[1]
  return claimed
}

/**
 * Verifies a request's signature and returns its access key. Throws an S3Error that names the problem. `findSecrets`
 * returns the key's possible secrets: none for a key that was never given out.
 */
export function verifySignature(
  request: SignedRequest,
  findSecrets: (accessKeyId: string) => readonly string[],
  nowMs: number,
): string {
  const parameters = splitQuery(request.url)
  const query = new Map(parameters)
  if (/^AWS /i.test(String(request.headers.authorization))) throw new S3Error('InvalidRequest', SIGN_V4)
  const claim = query.has('X-Amz-Signature') ? readPresigned(query, nowMs) : readHeader(request, nowMs)
  requireScope(claim)
  const secrets = findSecrets(claim.accessKeyId)
  if (secrets.length === 0)
    throw new S3Error('InvalidAccessKeyId', 'dsc gave out no such key; `dsc gateway key` gives one')
  const canonical = canonicalRequest(request, parameters, claim)
  const isOurs = secrets.some((secret) => isSecret(claim.signature, sign(secret, claim, canonical)))
  if (!isOurs) throw new S3Error('SignatureDoesNotMatch', 'the signature is not of this request and this key')
  return claim.accessKeyId
}

function readHeader({ headers }: SignedRequest, nowMs: number): Claim {
  const authorization = String(headers.authorization)
  const match =
    /^AWS4-HMAC-SHA256\s+Credential=([^/,\s]+)\/([^,\s]+),\s*SignedHeaders=([^,\s]+),\s*Signature=([0-9a-f]{64})$/.exec(
      authorization.trim(),
    )
  const date = headers['x-amz-date']
  if (!match || typeof date !== 'string')
    throw new S3Error('InvalidRequest', `expected an ${ALGORITHM} Authorization header and x-amz-date`)
  const [, accessKeyId = '', scope = '', signedHeaders = '', signature = ''] = match
  if (Math.abs(parseDate(date) - nowMs) > MAX_SKEW_MS)
    throw new S3Error('RequestTimeTooSkewed', 'the clocks of client and gateway differ by over 15 minutes')
  const payloadHash = headers['x-amz-content-sha256']
  return {
    accessKeyId,
    scope,
    signedHeaders: signedHeaders.split(';'),
    signature,
    date,
    payloadHash: typeof payloadHash === 'string' ? payloadHash : sha256(''),
  }
}

function readPresigned(query: ReadonlyMap<string, string>, nowMs: number): Claim {
  const parameter = (name: string) => query.get(name) ?? ''
  const [accessKeyId = '', ...scope] = parameter('X-Amz-Credential').split('/')
  const expiresSeconds = Number(parameter('X-Amz-Expires'))
  const date = parameter('X-Amz-Date')
  if (
    parameter('X-Amz-Algorithm') !== ALGORITHM ||
    !(expiresSeconds > 0 && expiresSeconds <= MAX_PRESIGNED_SECONDS)
  )
    throw new S3Error('AuthorizationQueryParametersError', `expected ${ALGORITHM} and X-Amz-Expires`)
  if (nowMs < parseDate(date) - MAX_SKEW_MS || nowMs > parseDate(date) + expiresSeconds * 1000)
    throw new S3Error('AccessDenied', 'Request has expired')
  return {
    accessKeyId,
    scope: scope.join('/'),
    signedHeaders: parameter('X-Amz-SignedHeaders').split(';'),
    signature: parameter('X-Amz-Signature'),
    date,
    payloadHash: 'UNSIGNED-PAYLOAD',
  }
}

/** Deriving a key takes one digest per piece of the scope: a limit keeps strangers from making it expensive. */
function requireScope({ scope, date }: Claim): void {
  const [day, , , end, ...rest] = scope.split('/')
  if (day === date.slice(0, 8) && end === 'aws4_request' && rest.length === 0) return
  throw new S3Error(
    'AuthorizationHeaderMalformed',
    'expected a credential of the form key/date/region/service/aws4_request, with the date of the request',
  )
}

function canonicalRequest(
  request: SignedRequest,
  query: readonly Parameter[],
  { signedHeaders, payloadHash }: Claim,
): string {
  const path = request.url.split('?', 1)[0]!
  const parameters = query
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [escapeUri(name), escapeUri(value)] as const)
    .toSorted(([a, x], [b, y]) => (a < b || (a === b && x < y) ? -1 : 1))
    .map((pair) => pair.join('='))
  const headers = signedHeaders.map((name) => {
    const value = request.headers[name]
    return `${name}:${[value ?? ''].flat().join(',').trim().replace(/ +/g, ' ')}\n`
  })
  return [
    request.method,
    path
      .split('/')
      .map((segment) => escapeUri(decode(segment)))
      .join('/'),
    parameters.join('&'),
    headers.join(''),
    signedHeaders.join(';'),
    payloadHash,
  ].join('\n')
}

function sign(secret: string, { scope, date }: Claim, canonical: string): string {
  const text = [ALGORITHM, date, scope, sha256(canonical)].join('\n')
  return findSigningKey(secret, scope).digest(text).toString('hex')
}

/** Keys by secret and scope: a client uses one all day, and deriving it takes longer than everything else. */
const signingKeys = new BoundedMap<string, HmacKey>(256)

function findSigningKey(secret: string, scope: string): HmacKey {
  return signingKeys.getOrMake(`${secret} ${scope}`, () => {
    let key = new HmacKey(Buffer.from(`AWS4${secret}`))
    for (const piece of scope.split('/')) key = new HmacKey(key.digest(piece))
    return key
  })
}

type Parameter = readonly [name: string, value: string]

/**
 * Decoded names and values. A parameter without `=` has an empty value, and `+` is literal. Keeps repeated names,
 * because the code that reads the request may use another one than the last.
 */
function splitQuery(url: string): readonly Parameter[] {
  const query = url.split(/\?(.*)/s, 2)[1] ?? ''
  return query
    .split('&')
    .filter(Boolean)
    .map((pair) => {
      const [name = '', value = ''] = pair.split(/=(.*)/s, 2)
      return [decode(name), decode(value)]
    })
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new S3Error('InvalidURI', 'the URL has broken percent escapes')
  }
}

/** AWS's UriEncode: escapes everything but letters, digits and `-._~`. */
function escapeUri(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Unix epoch in ms; NaN unless the date has the form `20260102T030405Z`. */
function parseDate(date: string): number {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date)
  const at = match ? Date.parse(`${match.slice(1, 4).join('-')}T${match.slice(4, 7).join(':')}Z`) : Number.NaN
  if (Number.isNaN(at)) throw new S3Error('AccessDenied', 'expected a date such as 20260102T030405Z')
  return at
}

function sha256(text: string): string {
  return hash('sha256', text)
}
