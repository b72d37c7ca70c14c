import { isDscError } from '../../failure/dsc-error.js'
import { SourceFailure } from '../../failure/source-failure.js'
import type { Headers } from '../../http/answer-listener.js'
import type { HttpProxy } from '../../http/find-proxy.js'
import { READ_BYTES } from '../../http/http-connection.js'
import { HttpPool } from '../../http/http-pool.js'
import { SOURCE_CHECKSUMS } from '../../model/manifest.js'
import { allocateForCrc64 } from '../../proof/crc.js'
import type { ObjectFacts, SourceChecksum } from '../../proof/object-facts.js'
import { countUploadParts } from '../../proof/plan-parts.js'
import { type AnswerDialect, AnswerHandler, type AnswerOptions, readEtag } from '../answer-handler.js'
import type { Credentials } from '../own-access.js'
import type { Fetcher, FetchRequest, InspectRequest, OpenFetcher } from '../source.js'
import { readErrorBody } from './error-body.js'
import { keepCredentials } from './keep-credentials.js'
import { describeAnswer, describeConnectionError } from './s3-failure.js'
import { encodeKey, Signer } from './sign-request.js'

/** Where a dataset's objects are, resolved once by the AWS SDK. Plain data, so that it can be passed to a worker. */
export interface S3Location {
  /** `https://host:port`. */
  readonly origin: string
  readonly host: string
  /** Certificates (PEM) that must have signed the server's own; undefined = those that Node.js trusts. */
  readonly ca: string | undefined
  /** The proxy that the environment sets for the origin; undefined: none. */
  readonly proxy: HttpProxy | undefined
  /** Path before the key, percent-encoded, ends in `/`. */
  readonly basePath: string
  readonly region: string
  /** The service named in signatures. */
  readonly service: string
  readonly bucket: string
  readonly prefix: string
  readonly requesterPays: boolean
  /** Requests go out unsigned. */
  readonly isAnonymous: boolean
}

/** Opens a fetcher for a location that the main thread has resolved. */
export const openS3Fetcher: OpenFetcher = ({ location, ask, connections }) => {
  const place = location as S3Location
  const getCredentials = place.isAnonymous
    ? () => undefined
    : keepCredentials(ask as () => Promise<Credentials>)
  return new S3Fetcher(place, getCredentials, connections)
}

interface S3Request {
  readonly method: 'GET' | 'HEAD'
  readonly key: string
  readonly query: string
  readonly amzHeaders: Record<string, string>
  readonly plainHeaders: Record<string, string>
  readonly answerTo: Omit<AnswerOptions, 'dialect' | 'what' | 'origin' | 'proxy'>
}

/** Shared by all fetchers of a thread, in memory that computes CRC-64/NVME, which verifies most S3 objects. */
let readBuffer: Buffer | undefined

/** Reads objects with signed requests over a pool of keep-alive connections. Credentials undefined = anonymous. */
export class S3Fetcher implements Fetcher {
  readonly #location: S3Location
  readonly #getCredentials: () => Promise<Credentials> | Credentials | undefined
  readonly #pool: HttpPool
  readonly #signer: Signer
  readonly #dialect: AnswerDialect
  readonly #ownName: string
  #rangesIgnored: boolean | undefined
  #isSingle = false

  constructor(
    location: S3Location,
    getCredentials: () => Promise<Credentials> | Credentials | undefined,
    connections: number,
  ) {
    this.#location = location
    this.#getCredentials = getCredentials
    const { origin, ca, proxy } = location
    readBuffer ??= allocateForCrc64(READ_BYTES)
    this.#pool = new HttpPool(origin, { connections, ca, proxy, readBuffer })
    this.#signer = new Signer(location.region, location.service)
    this.#dialect = speakS3(location.bucket)
    this.#ownName = nameOfObject(location.prefix)
  }

  async fetch(request: FetchRequest): Promise<void> {
    const isWhole = request.offset === 0 && request.length === request.sizeBytes
    const plainHeaders: Record<string, string> = { 'accept-encoding': 'identity' }
    if (request.etag !== null) plainHeaders['if-match'] = `"${request.etag}"`
    if (!isWhole) plainHeaders.range = `bytes=${request.offset}-${request.offset + request.length - 1}`
    await this.#send({
      method: 'GET',
      key: request.key,
      query: versionQuery(request),
      // For a range, servers answer with the checksum of an upload part, which is of no use here.
      amzHeaders: isWhole ? { 'x-amz-checksum-mode': 'ENABLED' } : {},
      plainHeaders,
      answerTo: { ...request, isWhole },
    })
  }

  async inspect(request: InspectRequest): Promise<ObjectFacts> {
    const headers = await this.#send({
      method: 'HEAD',
      key: request.key,
      query: versionQuery(request),
      amzHeaders: { 'x-amz-checksum-mode': 'ENABLED' },
      plainHeaders: request.etag === null ? {} : { 'if-match': `"${request.etag}"` },
      answerTo: { ...request, ...NO_BYTES },
    })
    const uploadPart = await this.#findUploadPart(request)
    return {
      ...readFacts(headers, uploadPart?.bytes ?? null),
      // The part belongs to another object, as its etag shows; this one's parts were probably as large.
      ...(uploadPart?.isOther ? { isPartSizeGuessed: true } : {}),
      ...((await this.#ignoresRanges(headers, request)) ? { ignoresRanges: true } : {}),
    }
  }

  async close(): Promise<void> {
    this.#pool.close()
  }

  /** Whether the server ignores ranges and sends whole objects; tested once, for servers that do not say. */
  async #ignoresRanges(headers: Headers, request: InspectRequest): Promise<boolean> {
    if (headers['accept-ranges'] === 'bytes' || request.sizeBytes < 2) return false
    if (this.#rangesIgnored === undefined) {
      const first = await this.#send({
        method: 'GET',
        key: request.key,
        query: versionQuery(request),
        amzHeaders: {},
        plainHeaders: { range: 'bytes=0-0' },
        answerTo: { ...request, offset: 0, length: 1, isWhole: false, sink: () => 0 },
      })
      this.#rangesIgnored = first['content-range'] === undefined
    }
    return this.#rangesIgnored
  }

  /**
   * Asks for the first upload part of the object; undefined if it has one part or the server does not tell. Some
   * servers give the part an etag of its own.
   */
  async #findUploadPart(
    request: InspectRequest,
  ): Promise<{ readonly bytes: number; readonly isOther: boolean } | undefined> {
    const uploadParts = countUploadParts(request.etag)
    if (uploadParts < 2) return undefined
    let first: Headers
    try {
      first = await this.#send({
        method: 'HEAD',
        key: request.key,
        query: ['partNumber=1', versionQuery(request)].filter(Boolean).join('&'),
        amzHeaders: {},
        plainHeaders: {},
        answerTo: { ...request, ...NO_BYTES, isPart: true },
      })
    } catch (error) {
      // The server refuses to tell: the usual sizes are tried instead.
      if (error instanceof SourceFailure && !error.isTransient) return undefined
      throw error
    }
    const bytes = Number(first['content-length'])
    // Servers that do not know part numbers answer with the whole object.
    if (!(bytes > 0) || Math.ceil(request.sizeBytes / bytes) !== uploadParts) return undefined
    const etag = readEtag(first)
    return { bytes, isOther: etag !== null && request.etag !== null && etag !== request.etag }
  }

  #send(request: S3Request): Promise<Headers> {
    if (request.key === this.#ownName) return this.#sendOfOne(request)
    return this.#sendTo(this.#location.prefix + request.key, request)
  }

  /** Where the source is one object, its key has the object's own name, which the prefix ends in already. */
  async #sendOfOne(request: S3Request): Promise<Headers> {
    const { prefix } = this.#location
    const whole = prefix + request.key
    const single = prefix.slice(0, -1)
    if (this.#isSingle) return this.#sendTo(single, request)
    try {
      return await this.#sendTo(whole, request)
    } catch (error) {
      if (!isDscError(error, 'SOURCE_NOT_FOUND')) throw error
      const headers = await this.#sendTo(single, request)
      this.#isSingle = true
      return headers
    }
  }

  #sendTo(objectKey: string, request: S3Request): Promise<Headers> {
    const credentials = this.#getCredentials()
    if (!(credentials instanceof Promise)) return this.#sendAs(credentials, objectKey, request)
    return credentials.then((found) => this.#sendAs(found, objectKey, request))
  }

  #sendAs(credentials: Credentials | undefined, objectKey: string, request: S3Request): Promise<Headers> {
    const { method, query, amzHeaders, plainHeaders, answerTo } = request
    const { basePath, bucket, host, origin, requesterPays, proxy } = this.#location
    const path = basePath + encodeKey(objectKey)
    if (requesterPays) amzHeaders['x-amz-request-payer'] = 'requester'
    const shared = credentials
      ? this.#signer.sign({ method, path, query, host, headers: amzHeaders }, credentials, Date.now())
      : { ...amzHeaders, host }
    return new Promise((resolve, reject) => {
      const what = `s3://${bucket}/${objectKey}`
      const handler = new AnswerHandler(
        { ...answerTo, dialect: this.#dialect, what, origin, proxy: proxy?.url },
        resolve,
        reject,
      )
      handler.begin((listener) =>
        this.#pool.send(
          {
            method,
            path: query === '' ? path : `${path}?${query}`,
            shared,
            headers: plainHeaders,
            stallTimeoutMs: answerTo.stallTimeoutMs,
          },
          listener,
        ),
      )
    })
  }
}

/** The name of the object that a prefix would be without its final slash. */
export function nameOfObject(prefix: string): string {
  return prefix.slice(prefix.lastIndexOf('/', prefix.length - 2) + 1, -1)
}

function speakS3(bucket: string): AnswerDialect {
  return {
    describeAnswer: ({ body, ...answer }) => describeAnswer({ ...answer, ...readErrorBody(body) }),
    describeConnectionError: (error, request) => describeConnectionError(error, { ...request, bucket }),
    readFacts: (headers) => readFacts(headers, null),
  }
}

const NO_BYTES = { offset: 0, length: 0, isWhole: true, sink: () => 0 }

function versionQuery(request: InspectRequest): string {
  return request.versionId === null ? '' : `versionId=${encodeURIComponent(request.versionId)}`
}

/** Reads the facts about the object from an answer's headers. */
function readFacts(headers: Headers, uploadPartBytes: number | null): ObjectFacts {
  const encryption = headers['x-amz-server-side-encryption']
  const isEtagMd5 =
    (encryption === undefined || encryption === 'AES256') &&
    headers['x-amz-server-side-encryption-customer-algorithm'] === undefined
  return { checksums: readChecksums(headers), uploadPartBytes, isEtagMd5 }
}

function readChecksums(headers: Headers): SourceChecksum[] {
  const checksums: SourceChecksum[] = []
  for (const algorithm of SOURCE_CHECKSUMS) {
    const value = headers[`x-amz-checksum-${algorithm}`]
    if (typeof value !== 'string') continue
    const isComposite = headers['x-amz-checksum-type'] === 'COMPOSITE' || /-\d+$/.test(value)
    checksums.push({ algorithm, value, isComposite })
  }
  return checksums
}
