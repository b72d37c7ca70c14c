import { SourceFailure } from '../failure/source-failure.js'
import type { AnswerListener, Headers } from '../http/answer-listener.js'
import type { RequestControl } from '../http/http-pool.js'
import type { ObjectFacts } from '../proof/object-facts.js'
import type { BrokenRequest } from './connection-failure.js'
import type { FetchRequest } from './source.js'

const MAX_ERROR_BODY_BYTES = 16_384

/** How one kind of server phrases its answers. */
export interface AnswerDialect {
  /** Turns an unsuccessful answer into the failure shown to the user; `body` is its beginning. */
  describeAnswer(answer: RefusedAnswer): SourceFailure
  /** Turns a failed connection into the failure shown to the user. */
  describeConnectionError(error: Error, request: Omit<BrokenRequest, 'hints'>): SourceFailure
  /** Reads what the head of an answer says about the object. */
  readFacts(headers: Headers): ObjectFacts
}

/** An unsuccessful answer. */
export interface RefusedAnswer {
  readonly what: string
  readonly status: number
  readonly headers: Headers
  /** The first 16 KiB at most. */
  readonly body: string
  /** Unix epoch, ms: a Retry-After may be a date. */
  readonly nowMs: number
}

/** Options for checking an answer and delivering its body. */
export interface AnswerOptions
  extends Pick<
    FetchRequest,
    'etag' | 'offset' | 'length' | 'sizeBytes' | 'sink' | 'findRoom' | 'onFacts' | 'stallTimeoutMs' | 'signal'
  > {
  readonly dialect: AnswerDialect
  readonly what: string
  readonly origin: string
  /** URL of the proxy on the way, for messages. */
  readonly proxy: string | undefined
  readonly isWhole: boolean
  /** A HEAD request for one upload part, made to learn its length. */
  readonly isPart?: boolean
}

/** Checks the head of an answer, hands its body to the sink and settles exactly once. */
export class AnswerHandler implements AnswerListener {
  #control: RequestControl | undefined
  #headers: Headers | undefined
  #status = 0
  #receivedBytes = 0
  /** Bytes to skip before the range when a server answers with the whole object. */
  #skippedBytes = 0
  #errorBody = ''
  #isSettled = false
  readonly #options: AnswerOptions
  readonly #resolve: (headers: Headers) => void
  readonly #reject: (error: unknown) => void
  readonly #onAbort = () => this.#fail(this.#options.signal?.reason)

  constructor(options: AnswerOptions, resolve: (headers: Headers) => void, reject: (error: unknown) => void) {
    this.#options = options
    this.#resolve = resolve
    this.#reject = reject
  }

  /** Sends the request by `send`, unless the signal has aborted. */
  begin(send: (listener: AnswerListener) => RequestControl): void {
    const { signal } = this.#options
    if (signal?.aborted) {
      this.#onAbort()
      return
    }
    signal?.addEventListener('abort', this.#onAbort)
    this.#control = send(this)
  }

  onHead(status: number, headers: Headers): void {
    this.#status = status
    this.#headers = headers
    if (status < 200 || status > 299) return
    const problem = checkHead(status, headers, this.#options)
    if (isWholeForRange(status, headers, this.#options)) this.#skippedBytes = this.#options.offset
    if (problem) this.#fail(problem)
    else this.#options.onFacts?.(this.#options.dialect.readFacts(headers))
  }

  onData(chunk: Uint8Array): void {
    if (this.#isSettled) return
    if (this.#status < 200 || this.#status > 299) {
      if (this.#errorBody.length < MAX_ERROR_BODY_BYTES)
        this.#errorBody += Buffer.from(chunk).toString('utf8')
      return
    }
    const { length, what, sink } = this.#options
    if (isWholeForRange(this.#status, this.#headers ?? {}, this.#options)) {
      this.#takeOfWhole(chunk)
      return
    }
    this.#receivedBytes += chunk.length
    if (this.#receivedBytes > length) {
      this.#fail(
        new SourceFailure(
          'SOURCE_CHANGED',
          `${what}: expected ${length} bytes, received more${this.#headers?.['content-length'] === undefined ? ' (without a length: is it stored with a Content-Encoding, and sent decompressed?)' : ''}`,
          { hint: 'dsc prepare <dataset> --refresh' },
        ),
      )
      return
    }
    this.#hand(chunk, sink)
  }

  /** Takes the range out of the whole object, then closes the connection. */
  #takeOfWhole(chunk: Uint8Array): void {
    const skipped = Math.min(this.#skippedBytes, chunk.length)
    this.#skippedBytes -= skipped
    const { length, sink } = this.#options
    const wanted = chunk.subarray(skipped, skipped + length - this.#receivedBytes)
    if (wanted.length === 0) return
    this.#receivedBytes += wanted.length
    this.#hand(wanted, sink)
    if (this.#isSettled || this.#receivedBytes < length || skipped + wanted.length === chunk.length) return
    this.#control?.cancel()
    this.#settle()
    this.#resolve(this.#headers ?? {})
  }

  #hand(chunk: Uint8Array, sink: (chunk: Uint8Array) => number): void {
    try {
      const pauseMs = sink(chunk)
      if (pauseMs > 0) this.#pause(pauseMs)
    } catch (error) {
      this.#fail(error)
    }
  }

  findRoom(): Buffer | undefined {
    return this.#isSettled ? undefined : this.#options.findRoom?.()
  }

  onEnd(): void {
    if (this.#isSettled) return
    const { what, length, dialect } = this.#options
    const [status, headers] = [this.#status, this.#headers ?? {}]
    if (status < 200 || status > 299) {
      const refused = { what, status, headers, body: this.#errorBody, nowMs: Date.now() }
      const failure = dialect.describeAnswer(refused)
      this.#fail(isStrayRefusal(status, headers, this.#options) ? retriable(failure) : failure)
    } else if (this.#receivedBytes < length) {
      this.#fail(
        new SourceFailure(
          'SOURCE_TRUNCATED',
          `${what}: expected ${length} bytes, received ${this.#receivedBytes}`,
          { isTransient: true, hint: 'try again: finished parts are kept' },
        ),
      )
    } else {
      this.#settle()
      this.#resolve(headers)
    }
  }

  onError(error: Error): void {
    if (this.#isSettled) return
    const { what, origin, dialect, proxy, length, stallTimeoutMs } = this.#options
    const receivedBytes = this.#headers ? this.#receivedBytes : undefined
    this.#fail(
      dialect.describeConnectionError(error, {
        what,
        origin,
        proxy,
        receivedBytes,
        expectedBytes: length,
        stallTimeoutMs,
      }),
    )
  }

  /** Stops reading from the socket, so that the limit slows the server down; a pause does not count as a stall. */
  #pause(pauseMs: number): void {
    this.#control?.pause()
    setTimeout(() => {
      if (!this.#isSettled) this.#control?.resume()
    }, pauseMs)
  }

  #fail(error: unknown): void {
    if (this.#isSettled) return
    this.#settle()
    this.#control?.cancel()
    this.#reject(error)
  }

  #settle(): void {
    this.#isSettled = true
    this.#options.signal?.removeEventListener('abort', this.#onAbort)
  }
}

/** Whether the server answers a request for a range with the whole object. */
function isWholeForRange(status: number, headers: Headers, options: AnswerOptions): boolean {
  if (options.isWhole || options.isPart || status !== 200 || headers['content-range'] !== undefined)
    return false
  return headers['content-length'] === String(options.sizeBytes)
}

/**
 * Whether a server refuses a range (416) that it has, as nodes of a CDN do now and then. Its answer may give the length
 * of the whole; without a length, the listing is believed.
 */
function isStrayRefusal(status: number, headers: Headers, { offset, length }: AnswerOptions): boolean {
  if (status !== 416) return false
  const wholeBytes = /^bytes \*\/(\d+)$/.exec(headers['content-range'] ?? '')?.[1]
  return wholeBytes === undefined || Number(wholeBytes) >= offset + length
}

function retriable({ code, message, hint }: SourceFailure): SourceFailure {
  return new SourceFailure(code, message, { isTransient: true, hint })
}

/** Google and others decompress objects stored with `Content-Encoding: gzip` unasked. */
function isDecompressed(headers: Headers): boolean {
  const stored = headers['x-goog-stored-content-encoding'] ?? 'identity'
  const isChanged = /^214\b/.test(headers.warning ?? '') || stored !== 'identity'
  return isChanged && headers['content-encoding'] === undefined
}

function checkHead(status: number, headers: Headers, options: AnswerOptions): SourceFailure | undefined {
  const { what, etag, isWhole, offset, length, sizeBytes } = options
  const foundEtag = readEtag(headers)
  // Some servers ignore If-Match.
  if (etag !== null && foundEtag !== null && foundEtag !== etag && !options.isPart)
    return new SourceFailure('SOURCE_CHANGED', `${what}: expected etag ${etag}, found ${foundEtag}`, {
      hint: 'the object was replaced while it was read: dsc prepare <dataset> --refresh',
    })
  if (isDecompressed(headers) && length > 0)
    return new SourceFailure(
      'SOURCE_UNREACHABLE',
      `${what}: it is stored with Content-Encoding: gzip, and the server sends it decompressed: the stored bytes cannot be read`,
      {
        hint: 'store it without Content-Encoding (gcloud storage objects update --clear-content-encoding), or leave it out by exclude:',
      },
    )
  if (isWhole || options.isPart) return undefined
  const range = `bytes ${offset}-${offset + length - 1}`
  const expected = `${range}/${sizeBytes}`
  const found = headers['content-range']
  const isRange = found === expected || found === `${range}/*` // a cache may not know the size of the whole
  // Some servers send the range and call it 200; others send the whole object.
  if ((status === 206 || status === 200) && isRange) return undefined
  if (isWholeForRange(status, headers, options)) return undefined
  return new SourceFailure(
    'SOURCE_CHANGED',
    `${what}: expected content-range ${expected}, found ${found ?? `none (status ${status})`}`,
    { hint: 'the server must support range requests; if it does: dsc prepare <dataset> --refresh' },
  )
}

/** The etag of an answer, without quotes. */
export function readEtag(headers: Headers): string | null {
  return headers.etag?.replace(/^W\//, '').replace(/^"|"$/g, '') ?? null
}
