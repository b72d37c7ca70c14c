/** What a client of the gateway asks for; the S3 API reference names each. */
export type S3Operation =
  | { readonly kind: 'ListBuckets' }
  | { readonly kind: 'HeadBucket' | 'GetBucketLocation' | 'GetBucketVersioning'; readonly bucket: string }
  | ({ readonly kind: 'ListObjects' | 'ListObjectsV2'; readonly bucket: string } & ListQuery)
  | {
      readonly kind: 'GetObject' | 'HeadObject'
      readonly bucket: string
      readonly key: string
      readonly versionId: string | undefined
      /** Of the upload, from 1 on; undefined: all of the object. */
      readonly partNumber: number | undefined
    }

/** The parameters of ListObjectsV2. */
export interface ListQuery {
  readonly prefix: string
  readonly delimiter: string
  /** Keys up to and with this one are left out; '' = from the first. */
  readonly after: string
  /** 0 to 1,000. */
  readonly maxKeys: number
  readonly isUrlEncoded: boolean
  /** As the client sent it, to be repeated in the answer. */
  readonly continuationToken: string | undefined
  readonly startAfter: string | undefined
}

/** A refusal in S3's words. */
export class S3Error extends Error {
  readonly code: string
  readonly status: number
  /** Seconds after which the client may ask again; absent = it need not. */
  readonly retryAfterSeconds: number | undefined
  /** More elements of the error's document, by name. */
  readonly details: Readonly<Record<string, string>>

  constructor(
    answer: {
      readonly code: string
      readonly status: number
      readonly retryAfterSeconds?: number
      readonly details?: Readonly<Record<string, string>>
    },
    message: string,
  ) {
    super(message)
    this.code = answer.code
    this.status = answer.status
    this.retryAfterSeconds = answer.retryAfterSeconds
    this.details = answer.details ?? {}
  }
}

const MAX_KEYS = 1000
/** Of an upload at S3. */
const MAX_PARTS = 10_000
/** Parameters that name another operation than reading objects and lists: ACLs, uploads, tags, policies … */
const OTHER_OPERATIONS = new Set(
  [
    'accelerate acl analytics attributes cors encryption intelligent-tiering inventory legal-hold lifecycle logging',
    'metadata metrics notification object-lock ownershipControls policy policyStatus publicAccessBlock',
    'replication requestPayment retention select tagging torrent uploadId uploads versions website',
  ].flatMap((line) => line.split(' ')),
)

/**
 * Reads what a request asks for. `buckets` tells host names of the virtual-host style apart from the gateway's own.
 * Throws an S3Error for what the gateway does not answer; it never writes.
 */
export function parseS3Request(request: {
  readonly method: string
  /** As sent: path and query, percent-encoded. */
  readonly url: string
  readonly host: string | undefined
  readonly buckets: Iterable<string>
}): S3Operation {
  const { method, url } = request
  const [rawPath = '', rawQuery = ''] = url.split(/\?(.*)/s, 2)
  const query = new URLSearchParams(rawQuery)
  if (method !== 'GET' && method !== 'HEAD')
    throw new S3Error(
      { code: 'AccessDenied', status: 403 },
      'dsc serves datasets to be read: nothing can be written through it',
    )
  for (const name of query.keys())
    if (OTHER_OPERATIONS.has(name))
      throw new S3Error({ code: 'NotImplemented', status: 501 }, `dsc does not answer ?${name}`)
  const path = decodePath(rawPath)
  const hostBucket = findHostBucket(request.host, request.buckets)
  const [bucket, key] = hostBucket === undefined ? splitPath(path) : [hostBucket, path.slice(1)]
  if (bucket === '' && key !== '')
    throw new S3Error({ code: 'InvalidBucketName', status: 400 }, 'the path has no bucket before the key')
  if (bucket === '') return { kind: 'ListBuckets' }
  if (key !== '') {
    const versionId = query.get('versionId') ?? undefined
    const partNumber = parsePartNumber(query.get('partNumber'))
    return { kind: method === 'HEAD' ? 'HeadObject' : 'GetObject', bucket, key, versionId, partNumber }
  }
  if (method === 'HEAD') return { kind: 'HeadBucket', bucket }
  if (query.has('location')) return { kind: 'GetBucketLocation', bucket }
  if (query.has('versioning')) return { kind: 'GetBucketVersioning', bucket }
  return parseList(bucket, query)
}

/** Path and query of a target, which is a whole URL where a client takes the server for a proxy (RFC 9112, 3.2.2). */
export function toOriginForm(target: string): string {
  const rest = /^https?:\/\/[^/?]*(.*)$/is.exec(target)?.[1] ?? target
  return rest.startsWith('/') ? rest : `/${rest}`
}

function parsePartNumber(raw: string | null): number | undefined {
  if (raw === null) return undefined
  const partNumber = /^\d{1,5}$/.test(raw) ? Number(raw) : 0
  if (partNumber < 1 || partNumber > MAX_PARTS)
    throw new S3Error(
      { code: 'InvalidArgument', status: 400 },
      `partNumber: expected 1 to ${MAX_PARTS}, found ${raw}`,
    )
  return partNumber
}

function parseList(bucket: string, query: URLSearchParams): S3Operation {
  const isV2 = query.get('list-type') === '2'
  const rawMaxKeys = query.get('max-keys') ?? String(MAX_KEYS)
  if (!/^\d{1,10}$/.test(rawMaxKeys))
    throw new S3Error(
      { code: 'InvalidArgument', status: 400 },
      `max-keys: expected a number, found ${rawMaxKeys}`,
    )
  const continuationToken = query.get('continuation-token') ?? undefined
  const startAfter = query.get('start-after') ?? undefined
  const marker = query.get('marker') ?? ''
  const encoding = query.get('encoding-type')
  if (encoding !== null && encoding !== 'url')
    throw new S3Error(
      { code: 'InvalidArgument', status: 400 },
      `encoding-type: expected url, found ${encoding}`,
    )
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
  }
}

/** The token is the last key or common prefix that was listed: any gateway of the cluster can go on from it. */
export function encodeToken(after: string): string {
  return Buffer.from(after).toString('base64url')
}

function decodeToken(token: string | undefined): string | undefined {
  if (token === undefined) return undefined
  if (!/^[A-Za-z0-9_-]+$/.test(token))
    throw new S3Error(
      { code: 'InvalidArgument', status: 400 },
      'continuation-token: expected one that a listing returned',
    )
  return Buffer.from(token, 'base64url').toString()
}

/** Percent escapes in a path are UTF-8; `+` is itself. */
function decodePath(rawPath: string): string {
  try {
    return decodeURIComponent(rawPath)
  } catch {
    throw new S3Error({ code: 'InvalidURI', status: 400 }, 'the path has broken percent escapes')
  }
}

function splitPath(path: string): readonly [bucket: string, key: string] {
  const slash = path.indexOf('/', 1)
  return slash === -1 ? [path.slice(1), ''] : [path.slice(1, slash), path.slice(slash + 1)]
}

/** `bucket.localhost:9300` → `bucket`, for buckets that are served. Addresses have no bucket in front. */
export function findHostBucket(host: string | undefined, buckets: Iterable<string>): string | undefined {
  const name = host?.replace(/:\d+$/, '').toLowerCase() ?? ''
  if (/^\d+(\.\d+){3}$/.test(name)) return undefined
  let longest: string | undefined
  for (const bucket of buckets)
    if (name.startsWith(`${bucket.toLowerCase()}.`) && bucket.length > (longest?.length ?? 0))
      longest = bucket
  return longest
}
