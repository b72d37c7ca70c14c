/** A client's request to the gateway; the S3 API reference names each operation. */
export type S3Operation =
  | {
      readonly kind: 'ListBuckets'
      readonly prefix: string
      /** List only buckets after this one; '': from the first. */
      readonly after: string
      /** 1 to 10,000. */
      readonly maxBuckets: number
    }
  | { readonly kind: 'HeadBucket' | 'GetBucketLocation' | 'GetBucketVersioning'; readonly bucket: string }
  | ({ readonly kind: 'ListObjects' | 'ListObjectsV2'; readonly bucket: string } & ListQuery)
  | {
      readonly kind: 'GetObject' | 'HeadObject'
      readonly bucket: string
      readonly key: string
      readonly versionId: string | undefined
      /** A part of the upload, from 1; undefined: the whole object. */
      readonly partNumber: number | undefined
      /** Headers of the answer that the client chooses; undefined: none. */
      readonly headers: Readonly<Record<string, string>> | undefined
    }

/** The parameters of ListObjectsV2. */
export interface ListQuery {
  readonly prefix: string
  readonly delimiter: string
  /** List only keys after this one; '': from the first. */
  readonly after: string
  /** 0 to 1,000. */
  readonly maxKeys: number
  readonly isUrlEncoded: boolean
  /** As the client sent it; the answer repeats it. */
  readonly continuationToken: string | undefined
  readonly startAfter: string | undefined
  /** Whether to list each object with its owner. */
  readonly showsOwner: boolean
}

/** S3's codes of refusals, and the HTTP status of each. */
const STATUSES = {
  AuthorizationHeaderMalformed: 400,
  AuthorizationQueryParametersError: 400,
  InvalidArgument: 400,
  InvalidBucketName: 400,
  InvalidRequest: 400,
  InvalidURI: 400,
  AccessDenied: 403,
  InvalidAccessKeyId: 403,
  RequestTimeTooSkewed: 403,
  SignatureDoesNotMatch: 403,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NoSuchVersion: 404,
  PreconditionFailed: 412,
  InvalidPartNumber: 416,
  InvalidRange: 416,
  InternalError: 500,
  NotImplemented: 501,
  ServiceUnavailable: 503,
  SlowDown: 503,
} as const
/** How soon a client may ask again that was refused for the moment. */
const RETRY_AFTER_SECONDS = 5

/** A refusal in S3's terms. */
export class S3Error extends Error {
  readonly code: string
  readonly status: number
  /** Seconds after which the client may retry; absent: no retry needed. */
  readonly retryAfterSeconds: number | undefined
  /** More elements of the error document, by name. */
  readonly details: Readonly<Record<string, string>>

  constructor(
    code: keyof typeof STATUSES,
    message: string,
    more: { readonly retryAfterSeconds?: number; readonly details?: S3Error['details'] } = {},
  ) {
    super(message)
    this.code = code
    this.status = STATUSES[code]
    this.retryAfterSeconds = more.retryAfterSeconds ?? (this.status === 503 ? RETRY_AFTER_SECONDS : undefined)
    this.details = more.details ?? {}
  }
}

const MAX_KEYS = 1000
/** S3's limit for an upload. */
const MAX_PARTS = 10_000
/** S3's limit for an account. */
const MAX_BUCKETS = 10_000
/** Advice for clients that sign with version 2: boto3's default at a custom endpoint, no longer accepted by S3. */
export const SIGN_V4 =
  "signed with version 2: sign with version 4 (boto3: config=Config(signature_version='s3v4'))"
/**
 * Parameters of the supported operations. Any other may name a sub-resource (?acl, ?uploads, ?session, and S3 adds new
 * ones) whose answer has another form, so it is refused.
 */
const PARAMETERS = {
  service: new Set(['prefix', 'max-buckets', 'continuation-token', 'bucket-region']),
  bucket: new Set(
    [
      'delimiter encoding-type fetch-owner list-type location marker max-keys prefix versioning',
      'continuation-token start-after',
    ]
      .join(' ')
      .split(' '),
  ),
  object: new Set(['versionId', 'partNumber']),
}
/** Allowed with every operation: its name, which newer SDKs send, and the parameters of presigned URLs. */
const COMMON_PARAMETER = /^(x-id$|x-amz-)/i
/** Headers of the answer that a client of GetObject may choose. */
const RESPONSE_HEADERS = {
  'response-cache-control': 'cache-control',
  'response-content-disposition': 'content-disposition',
  'response-content-encoding': 'content-encoding',
  'response-content-language': 'content-language',
  'response-content-type': 'content-type',
  'response-expires': 'expires',
} as const

/**
 * Parses a request. `hostBucket` is the bucket in its host name, if any. Throws an S3Error if the gateway does not
 * support the request; it never writes.
 */
export function parseS3Request(request: {
  readonly method: string
  /** As sent: path and query, percent-encoded. */
  readonly url: string
  readonly hostBucket?: string | undefined
}): S3Operation {
  const { method, url, hostBucket } = request
  const [rawPath = '', rawQuery = ''] = url.split(/\?(.*)/s, 2)
  const query = new URLSearchParams(rawQuery)
  if (method !== 'GET' && method !== 'HEAD')
    throw new S3Error('AccessDenied', 'dsc serves datasets to be read: nothing can be written through it')
  const path = decodePath(rawPath)
  const [bucket, key] = hostBucket === undefined ? splitPath(path) : [hostBucket, path.slice(1)]
  if (bucket === '' && key !== '')
    throw new S3Error('InvalidBucketName', 'the path has no bucket before the key')
  requireKnown(query, bucket === '' ? 'service' : key === '' ? 'bucket' : 'object')
  if (bucket === '') return parseBucketList(query)
  if (key !== '') {
    const versionId = query.get('versionId') ?? undefined
    const partNumber = parsePartNumber(query.get('partNumber'))
    const headers = readResponseHeaders(query)
    return {
      kind: method === 'HEAD' ? 'HeadObject' : 'GetObject',
      bucket,
      key,
      versionId,
      partNumber,
      headers,
    }
  }
  if (method === 'HEAD') return { kind: 'HeadBucket', bucket }
  if (query.has('location')) return { kind: 'GetBucketLocation', bucket }
  if (query.has('versioning')) return { kind: 'GetBucketVersioning', bucket }
  return parseList(bucket, query)
}

/** Path and query of a target, which is a whole URL if the client takes the server for a proxy (RFC 9112, 3.2.2). */
export function toOriginForm(target: string): string {
  const rest = /^https?:\/\/[^/?]*(.*)$/is.exec(target)?.[1] ?? target
  return rest.startsWith('/') ? rest : `/${rest}`
}

function requireKnown(query: URLSearchParams, of: keyof typeof PARAMETERS): void {
  for (const name of query.keys()) {
    if (PARAMETERS[of].has(name) || COMMON_PARAMETER.test(name)) continue
    if (of === 'object' && name in RESPONSE_HEADERS) continue
    if (name === 'AWSAccessKeyId' || name === 'Signature') throw new S3Error('InvalidRequest', SIGN_V4)
    throw new S3Error('NotImplemented', `dsc does not answer ?${name}`)
  }
}

function readResponseHeaders(query: URLSearchParams): Readonly<Record<string, string>> | undefined {
  const headers: Record<string, string> = {}
  for (const [parameter, header] of Object.entries(RESPONSE_HEADERS)) {
    const value = query.get(parameter)
    if (value === null) continue
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
      throw new S3Error(
        'InvalidArgument',
        `${parameter}: expected what a header may hold, found ${JSON.stringify(value)}`,
      )
    headers[header] = value
  }
  return Object.keys(headers).length === 0 ? undefined : headers
}

function parseBucketList(query: URLSearchParams): S3Operation {
  const rawMost = query.get('max-buckets') ?? String(MAX_BUCKETS)
  const most = /^\d{1,5}$/.test(rawMost) ? Number(rawMost) : 0
  if (most < 1 || most > MAX_BUCKETS)
    throw new S3Error('InvalidArgument', `max-buckets: expected 1 to ${MAX_BUCKETS}, found ${rawMost}`)
  const after = decodeToken(query.get('continuation-token') ?? undefined) ?? ''
  return { kind: 'ListBuckets', prefix: query.get('prefix') ?? '', after, maxBuckets: most }
}

function parsePartNumber(raw: string | null): number | undefined {
  if (raw === null) return undefined
  const partNumber = /^\d{1,5}$/.test(raw) ? Number(raw) : 0
  if (partNumber < 1 || partNumber > MAX_PARTS)
    throw new S3Error('InvalidArgument', `partNumber: expected 1 to ${MAX_PARTS}, found ${raw}`)
  return partNumber
}

function parseList(bucket: string, query: URLSearchParams): S3Operation {
  const isV2 = query.get('list-type') === '2'
  const rawMaxKeys = query.get('max-keys') ?? String(MAX_KEYS)
  if (!/^\d{1,10}$/.test(rawMaxKeys))
    throw new S3Error('InvalidArgument', `max-keys: expected a number, found ${rawMaxKeys}`)
  const continuationToken = query.get('continuation-token') ?? undefined
  const startAfter = query.get('start-after') ?? undefined
  const marker = query.get('marker') ?? ''
  const encoding = query.get('encoding-type')
  if (encoding !== null && encoding !== 'url')
    throw new S3Error('InvalidArgument', `encoding-type: expected url, found ${encoding}`)
  return {
    kind: isV2 ? 'ListObjectsV2' : 'ListObjects',
    bucket,
    prefix: query.get('prefix') ?? '',
    delimiter: query.get('delimiter') ?? '',
    after: isV2 ? (decodeToken(continuationToken) ?? startAfter ?? '') : marker,
    maxKeys: Math.min(MAX_KEYS, Number(rawMaxKeys)),
    isUrlEncoded: encoding === 'url',
    continuationToken,
    startAfter,
    showsOwner: !isV2 || query.get('fetch-owner') === 'true',
  }
}

/** The token is the last listed key, common prefix or bucket, so any gateway of the cluster can continue from it. */
export function encodeToken(after: string): string {
  return Buffer.from(after).toString('base64url')
}

function decodeToken(token: string | undefined): string | undefined {
  if (token === undefined) return undefined
  if (!/^[A-Za-z0-9_-]+$/.test(token))
    throw new S3Error('InvalidArgument', 'continuation-token: expected one that a listing returned')
  return Buffer.from(token, 'base64url').toString()
}

/** Percent escapes in a path are UTF-8; `+` is literal. */
function decodePath(rawPath: string): string {
  try {
    return decodeURIComponent(rawPath)
  } catch {
    throw new S3Error('InvalidURI', 'the path has broken percent escapes')
  }
}

function splitPath(path: string): readonly [bucket: string, key: string] {
  const slash = path.indexOf('/', 1)
  return slash === -1 ? [path.slice(1), ''] : [path.slice(1, slash), path.slice(slash + 1)]
}
