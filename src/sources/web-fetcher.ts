import { isDscError } from '../failure/dsc-error.js'
import type { Headers } from '../http/answer-listener.js'
import type { ObjectFacts } from '../proof/object-facts.js'
import { type AnswerDialect, AnswerHandler } from './answer-handler.js'
import type { Fetcher, FetchRequest, InspectRequest } from './source.js'
import { isTold } from './untold-etag.js'
import { findRedirect, type Hop, WebClient, type WebClientOptions } from './web-client.js'

/** The properties of one kind of web source. */
interface WebProtocol {
  /** The URL of an object, and its name in messages. */
  locate(object: Pick<FetchRequest, 'key' | 'versionId'>): {
    readonly url: string
    readonly what: string
    /** Its URL where `url` is not found: the source may name one file or the folder of such a file. */
    readonly otherwise?: string | undefined
  }
  readonly dialect: Omit<AnswerDialect, 'readFacts'>
  /** Whether the servers are known to support ranges; else a range is tested first. */
  readonly hasRanges: boolean
  /** Whether an object's etag is the one that the server would send. */
  readonly hasEtags: boolean
}

/** Reads objects that web servers offer under URLs, and follows redirects to other servers. */
export class WebFetcher implements Fetcher {
  readonly #protocol: WebProtocol
  readonly #client: WebClient
  /** Whether a server answers a request for a part with the whole object, by origin of its URLs. */
  readonly #ignoresRanges = new Map<string, boolean>()
  /** Servers seen to send strong etags: only these may go into `If-Range` (RFC 9110, 13.1.5). */
  readonly #strong = new Set<string>()
  /** Whether the source names one file. */
  #isSingle = false

  constructor(protocol: WebProtocol, options: WebClientOptions) {
    this.#protocol = protocol
    this.#client = new WebClient(options)
  }

  async fetch(request: FetchRequest): Promise<void> {
    await this.#get(request)
  }

  async inspect(request: InspectRequest): Promise<ObjectFacts> {
    const ignoresRanges =
      !this.#protocol.hasRanges && request.sizeBytes > 1 && (await this.#tryRange(request))
    return { ...factsOf(request), ...(ignoresRanges ? { ignoresRanges } : {}) }
  }

  async close(): Promise<void> {
    this.#client.close()
  }

  async #tryRange(request: InspectRequest): Promise<boolean> {
    const { origin } = new URL(this.#protocol.locate(request).url)
    const known = this.#ignoresRanges.get(origin)
    if (known !== undefined) return known
    const answer = await this.#get({ ...request, offset: 0, length: 1, sink: () => 0 })
    const ignoresRanges = answer['content-range'] === undefined
    this.#ignoresRanges.set(origin, ignoresRanges)
    return ignoresRanges
  }

  async #get(request: FetchRequest): Promise<Headers> {
    const { url, what, otherwise } = this.#protocol.locate(request)
    const get = (from: string) => this.#client.follow(from, (hop) => this.#ask(hop, request, what))
    if (otherwise === undefined) return get(url)
    if (this.#isSingle) return get(otherwise)
    try {
      return await get(url)
    } catch (error) {
      if (!isDscError(error, 'SOURCE_NOT_FOUND')) throw error
    }
    const answer = await get(otherwise)
    this.#isSingle = true
    return answer
  }

  #ask(hop: Hop, request: FetchRequest, what: string): Promise<Headers> {
    const { hasEtags, dialect } = this.#protocol
    const { offset, length, sizeBytes, stallTimeoutMs } = request
    const isWhole = offset === 0 && length === sizeBytes
    // If the listed checksum verifies a file, the server's etag does not matter.
    const etag = hasEtags && !request.checksum && isTold(request.etag) ? request.etag : null
    const headers = {
      ...hop.headers,
      ...(isWhole ? {} : { range: `bytes=${offset}-${offset + length - 1}` }),
      ...(!isWhole && etag !== null && this.#strong.has(hop.origin) ? { 'if-range': `"${etag}"` } : {}),
    }
    return new Promise((resolve, reject) => {
      const options = {
        ...request,
        etag,
        isWhole,
        what,
        origin: hop.origin,
        proxy: hop.proxy?.url,
        dialect: {
          readFacts: () => factsOf(request),
          describeConnectionError: dialect.describeConnectionError,
          describeAnswer: (answer: Parameters<AnswerDialect['describeAnswer']>[0]) =>
            findRedirect(what, answer.status, answer.headers) ?? dialect.describeAnswer(answer),
        },
      }
      const onEnd = (answer: Headers) => {
        if (answer.etag?.startsWith('"')) this.#strong.add(hop.origin)
        resolve(answer)
      }
      new AnswerHandler(options, onEnd, reject).begin((listener) =>
        hop.pool.send({ method: 'GET', path: hop.path, headers, stallTimeoutMs }, listener),
      )
    })
  }
}

/** Uses the listed checksum: web servers send nothing that could verify bytes. */
function factsOf({ checksum }: Pick<FetchRequest, 'checksum'>): ObjectFacts {
  return {
    checksums: checksum ? [{ ...checksum, isComposite: false }] : [],
    uploadPartBytes: null,
    isEtagMd5: false,
  }
}
