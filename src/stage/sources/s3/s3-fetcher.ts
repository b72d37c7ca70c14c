import type { IncomingHttpHeaders } from 'node:http'
import { type Dispatcher, Pool } from 'undici'
import { SOURCE_CHECKSUMS } from '../../../model/manifest.js'
import type { ObjectFacts, SourceChecksum } from '../../plan/object-facts.js'
import { countUploadParts } from '../../plan/plan-parts.js'
import type { Fetcher, FetchRequest, InspectRequest } from '../../source.js'
import { SourceFailure } from '../../source-failure.js'
import { describeAnswer, describeConnectionError } from './s3-failure.js'
import { type Credentials, createSigner, encodeKey } from './sign-request.js'

/** Where the objects of a dataset lie, resolved once by the AWS SDK. Plain data, so that a worker can have it. */
export interface S3Location {
  /** `https://host:port`. */
  readonly origin: string
  readonly host: string
  /** Path before the key, percent-encoded, ends in `/`. */
  readonly basePath: string
  readonly region: string
  readonly bucket: string
  readonly prefix: string
  readonly requesterPays: boolean
}

const CONNECT_TIMEOUT_MS = 10_000
const MAX_ERROR_BODY_BYTES = 16_384

/** Reads objects with signed requests over a pool of keep-alive connections. Credentials undefined = anonymous. */
export function openS3Fetcher(
  location: S3Location,
  getCredentials: () => Promise<Credentials> | Credentials | undefined,
  options: { readonly connections: number },
): Fetcher {
  const pool = new Pool(location.origin, {
    connections: options.connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: 30_000,
    connect: { timeout: CONNECT_TIMEOUT_MS },
  })
  const sign = createSigner(location.region)

  async function send(request: {
    readonly method: 'GET' | 'HEAD'
    readonly key: string
    readonly query: string
    readonly amzHeaders: Record<string, string>
    readonly plainHeaders: Record<string, string>
    readonly answerTo: Omit<AnswerOptions, 'what' | 'origin'>
  }): Promise<IncomingHttpHeaders> {
    const path = location.basePath + encodeKey(location.prefix + request.key)
    if (location.requesterPays) request.amzHeaders['x-amz-request-payer'] = 'requester'
    const pending = getCredentials()
    const credentials = pending instanceof Promise ? await pending : pending
    const unsigned = { ...request, path, host: location.host, headers: request.amzHeaders }
    const headers = credentials
      ? sign(unsigned, credentials, Date.now())
      : { ...request.amzHeaders, host: location.host }
    const { answerTo } = request
    return new Promise((resolve, reject) => {
      pool.dispatch(
        {
          method: request.method,
          path: request.query === '' ? path : `${path}?${request.query}`,
          headers: { ...headers, ...request.plainHeaders },
          headersTimeout: answerTo.stallTimeoutMs,
          bodyTimeout: answerTo.stallTimeoutMs,
        },
        new AnswerHandler(
          {
            ...answerTo,
            what: `s3://${location.bucket}/${location.prefix}${request.key}`,
            origin: location.origin,
          },
          resolve,
          reject,
        ),
      )
    })
  }

  return {
    async fetch(request) {
      const isWhole = request.offset === 0 && request.length === request.sizeBytes
      const plainHeaders: Record<string, string> = { 'accept-encoding': 'identity' }
      if (request.etag !== null) plainHeaders['if-match'] = `"${request.etag}"`
      if (!isWhole) plainHeaders.range = `bytes=${request.offset}-${request.offset + request.length - 1}`
      await send({
        method: 'GET',
        key: request.key,
        query: versionQuery(request),
        // With a range, servers answer with the checksum of an upload part, which nothing here could use.
        amzHeaders: isWhole ? { 'x-amz-checksum-mode': 'ENABLED' } : {},
        plainHeaders,
        answerTo: { ...request, isWhole },
      })
    },
    async inspect(request) {
      const answerTo = { ...request, offset: 0, length: 0, isWhole: true, sink: () => 0 }
      const headers = await send({
        method: 'HEAD',
        key: request.key,
        query: versionQuery(request),
        amzHeaders: { 'x-amz-checksum-mode': 'ENABLED' },
        plainHeaders: request.etag === null ? {} : { 'if-match': `"${request.etag}"` },
        answerTo,
      })
      const uploadParts = countUploadParts(request.etag)
      let uploadPartBytes: number | null = null
      if (uploadParts > 1) {
        const query = ['partNumber=1', versionQuery(request)].filter(Boolean).join('&')
        const first = await send({
          method: 'HEAD',
          key: request.key,
          query,
          amzHeaders: {},
          plainHeaders: {},
          answerTo: { ...answerTo, isPart: true },
        })
        const bytes = Number(first['content-length'])
        // Servers that do not know part numbers answer with the whole object.
        if (bytes > 0 && Math.ceil(request.sizeBytes / bytes) === uploadParts) uploadPartBytes = bytes
      }
      return readFacts(headers, uploadPartBytes)
    },
    close: () => pool.destroy(),
  }
}

interface AnswerOptions
  extends Pick<
    FetchRequest,
    'etag' | 'offset' | 'length' | 'sizeBytes' | 'sink' | 'onFacts' | 'stallTimeoutMs' | 'signal'
  > {
  readonly what: string
  readonly origin: string
  readonly isWhole: boolean
  /** A HEAD of one upload part: its length is the question. */
  readonly isPart?: boolean
}

/** Checks the head of an answer, hands its body to the sink and settles exactly once. */
class AnswerHandler implements Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | undefined
  #headers: IncomingHttpHeaders | undefined
  #status = 0
  #receivedBytes = 0
  #errorBody = ''
  #isSettled = false
  readonly #options: AnswerOptions
  readonly #resolve: (headers: IncomingHttpHeaders) => void
  readonly #reject: (error: unknown) => void
  readonly #onAbort = () => this.#fail(this.#options.signal?.reason)

  constructor(
    options: AnswerOptions,
    resolve: (headers: IncomingHttpHeaders) => void,
    reject: (error: unknown) => void,
  ) {
    this.#options = options
    this.#resolve = resolve
    this.#reject = reject
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    const { signal } = this.#options
    if (signal?.aborted) this.#onAbort()
    else signal?.addEventListener('abort', this.#onAbort)
  }

  onResponseStart(_controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status
    this.#headers = headers
    if (status < 200 || status > 299) return
    const problem = checkHead(status, headers, this.#options)
    if (problem) this.#fail(problem)
    else this.#options.onFacts?.(readFacts(headers, null))
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    if (this.#isSettled) return
    if (this.#status < 200 || this.#status > 299) {
      if (this.#errorBody.length < MAX_ERROR_BODY_BYTES) this.#errorBody += chunk.toString('utf8')
      return
    }
    this.#receivedBytes += chunk.length
    const { length, what, sink } = this.#options
    if (this.#receivedBytes > length) {
      this.#fail(
        new SourceFailure('SOURCE_CHANGED', `${what}: expected ${length} bytes, received more`, {
          isTransient: false,
          hint: 'dsc prepare --refresh',
        }),
      )
      return
    }
    try {
      const pauseMs = sink(chunk)
      if (pauseMs > 0) this.#pause(pauseMs)
    } catch (error) {
      this.#fail(error)
    }
  }

  onResponseEnd(): void {
    if (this.#isSettled) return
    const { what, length } = this.#options
    if (this.#status < 200 || this.#status > 299) {
      this.#fail(
        describeAnswer({
          what,
          status: this.#status,
          code: /<Code>([^<]*)<\/Code>/.exec(this.#errorBody)?.[1] ?? '',
          message: /<Message>([^<]*)<\/Message>/.exec(this.#errorBody)?.[1] ?? '',
          headers: this.#headers ?? {},
          nowMs: Date.now(),
        }),
      )
    } else if (this.#receivedBytes < length) {
      this.#fail(
        new SourceFailure(
          'SOURCE_TRUNCATED',
          `${what}: expected ${length} bytes, received ${this.#receivedBytes}`,
          {
            isTransient: true,
            hint: 'try again: finished parts are kept',
          },
        ),
      )
    } else {
      this.#settle()
      this.#resolve(this.#headers ?? {})
    }
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (this.#isSettled) return
    const { what, origin, length, stallTimeoutMs } = this.#options
    const receivedBytes = this.#headers ? this.#receivedBytes : undefined
    this.#fail(
      describeConnectionError(error, { what, origin, receivedBytes, expectedBytes: length, stallTimeoutMs }),
    )
  }

  /** Stops reading from the socket, so that the server feels the limit; a pause is no stall. */
  #pause(pauseMs: number): void {
    this.#controller?.pause()
    setTimeout(() => {
      if (!this.#isSettled) this.#controller?.resume()
    }, pauseMs)
  }

  #fail(error: unknown): void {
    if (this.#isSettled) return
    this.#settle()
    this.#controller?.abort(error instanceof Error ? error : new Error(String(error)))
    this.#reject(error)
  }

  #settle(): void {
    this.#isSettled = true
    this.#options.signal?.removeEventListener('abort', this.#onAbort)
  }
}

function checkHead(
  status: number,
  headers: IncomingHttpHeaders,
  options: AnswerOptions,
): SourceFailure | undefined {
  const { what, etag, isWhole, offset, length, sizeBytes } = options
  const foundEtag = headers.etag?.replace(/^W\//, '').replace(/^"|"$/g, '') ?? null
  // Some servers ignore If-Match.
  if (etag !== null && foundEtag !== null && foundEtag !== etag)
    return new SourceFailure('SOURCE_CHANGED', `${what}: expected etag ${etag}, found ${foundEtag}`, {
      isTransient: false,
      hint: 'the object was replaced while it was read: dsc prepare --refresh',
    })
  if (isWhole || options.isPart) return undefined
  const expected = `bytes ${offset}-${offset + length - 1}/${sizeBytes}`
  const found = headers['content-range']
  if (status === 206 && found === expected) return undefined
  return new SourceFailure(
    'SOURCE_CHANGED',
    `${what}: expected content-range ${expected}, found ${found ?? `none (status ${status})`}`,
    { isTransient: false, hint: 'the server must support range requests; if it does: dsc prepare --refresh' },
  )
}

function versionQuery(request: InspectRequest): string {
  return request.versionId === null ? '' : `versionId=${encodeURIComponent(request.versionId)}`
}

function readFacts(headers: IncomingHttpHeaders, uploadPartBytes: number | null): ObjectFacts {
  const encryption = headers['x-amz-server-side-encryption']
  const isEtagMd5 =
    (encryption === undefined || encryption === 'AES256') &&
    headers['x-amz-server-side-encryption-customer-algorithm'] === undefined
  return { checksums: readChecksums(headers), uploadPartBytes, isEtagMd5 }
}

function readChecksums(headers: IncomingHttpHeaders): SourceChecksum[] {
  const checksums: SourceChecksum[] = []
  for (const algorithm of SOURCE_CHECKSUMS) {
    const value = headers[`x-amz-checksum-${algorithm}`]
    if (typeof value !== 'string') continue
    const isComposite = headers['x-amz-checksum-type'] === 'COMPOSITE' || /-\d+$/.test(value)
    checksums.push({ algorithm, value, isComposite })
  }
  return checksums
}
