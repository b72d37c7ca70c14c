import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Dataset } from '../../model/dataset.js'
import { formatHostPort } from '../../model/host-port.js'
import { createUniqueId } from '../../platform/unique-id.js'
import { answerAtOnce } from './answer-at-once.js'
import { findServed, type ServedDataset } from './find-dataset.js'
import { GatewayAccess } from './gateway-access.js'
import { GatewayCopies } from './gateway-copies.js'
import { GatewayCounts } from './gateway-counts.js'
import { findHostBucket, GatewayNames } from './gateway-names.js'
import type { GatewayOptions } from './gateway-options.js'
import { isReadable, judgeReaders, type RequireReader } from './gateway-readers.js'
import { answerHub, type HubExchange, refuseHub } from './hub/answer-hub.js'
import { type HubOperation, parseHubRequest } from './hub/parse-hub-request.js'
import { findRepository, requireHubToken } from './hub-repositories.js'
import { KnownCatalog } from './known-catalog.js'
import { listBucket } from './list-bucket.js'
import type { Pins } from './located.js'
import { formatBuckets, formatListing, formatLocation, formatVersioning } from './s3-documents.js'
import { parseS3Request, type S3Operation, toOriginForm } from './s3-request.js'
import { type Sent, sendObject } from './send-object.js'
import { sendS3Error } from './send-s3-error.js'
import { toHubRefusal, toS3Error, undeclared } from './to-s3-error.js'
import { answerHalfOpen, letWait } from './waiting-clients.js'

const MAX_CONNECTIONS = 4096
const MAX_HEADER_BYTES = 32 * 1024
const HEAD_TIMEOUT_MS = 10_000
/** How long a client may leave its answer unread before it is cut off, in ms: its copy stays held until then. */
const IDLE_TIMEOUT_MS = 120_000
/** Silence after which the kernel probes whether a client is still there, in ms: its machine may be off. */
const PROBE_AFTER_MS = 60_000
const HOLDS_PER_KEEP = 4

/**
 * A read-only S3 server over this node's copies: clients keep their buckets and keys and set only the endpoint. A
 * missing dataset is staged within the limits, and read during its download. Only datasets in dsc.yaml or the record
 * are served, because the gateway reads with the node's credentials.
 */
export class Gateway {
  readonly #options: GatewayOptions
  readonly #copies: GatewayCopies
  readonly #counts: GatewayCounts
  readonly #id = createUniqueId()
  #requests = 0
  readonly #stopping = new AbortController()
  readonly #access: GatewayAccess
  readonly #names: GatewayNames
  /** Open connections, and the versions that each one reads. */
  readonly #connections = new Map<Socket, Pins>()
  readonly #server
  readonly #renewal: NodeJS.Timeout
  readonly #catalog: KnownCatalog

  private constructor(options: GatewayOptions) {
    this.#options = options
    this.#access = new GatewayAccess(options)
    this.#names = new GatewayNames(options.names)
    this.#catalog = new KnownCatalog(options)
    this.#counts = new GatewayCounts(options.onCounts)
    const { keepMs } = options
    this.#copies = new GatewayCopies({ ...options, counts: this.#counts, signal: this.#stopping.signal })
    this.#renewal = setInterval(() => void this.#copies.renewHolds(), keepMs / HOLDS_PER_KEEP).unref()
    const probes = { keepAlive: true, keepAliveInitialDelay: PROBE_AFTER_MS }
    const hear = (request: IncomingMessage, response: ServerResponse) => {
      request.url = toOriginForm(request.url ?? '')
      if (!this.#answerAtOnce(request, response)) void this.#answer(request, response)
    }
    this.#server = createServer({ maxHeaderSize: MAX_HEADER_BYTES, ...probes }, hear)
    // Refuse an upload before its body: clients that wait for `100 Continue` would otherwise be told to send it.
    this.#server.on('checkContinue', hear)
    answerHalfOpen(this.#server)
    this.#server.headersTimeout = HEAD_TIMEOUT_MS
    this.#server.keepAliveTimeout = IDLE_TIMEOUT_MS
    this.#server.timeout = IDLE_TIMEOUT_MS
    this.#server.maxConnections = MAX_CONNECTIONS
    this.#server.on('connection', (socket: Socket) => {
      this.#connections.set(socket, new Map())
      socket.on('close', () => this.#connections.delete(socket))
      socket.on('error', () => socket.destroy())
    })
  }

  /** Starts listening. Rejects with the system's error if it cannot. */
  static async open(options: GatewayOptions): Promise<Gateway> {
    const gateway = new Gateway(options)
    const { host, port } = options.listen
    const place = { host, port, reusePort: options.isShared }
    await new Promise<void>((resolve, reject) => {
      gateway.#server.once('error', reject)
      gateway.#server.listen(place, resolve)
    }).catch((error: unknown) => {
      clearInterval(gateway.#renewal)
      throw error
    })
    void gateway.#catalog.read() // known from now on, even while the record is away
    return gateway
  }

  /** The endpoint that clients set. */
  get url(): string {
    const { host } = this.#options.listen
    const { port } = this
    return `http://${formatHostPort({ host: host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port })}`
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  /** Accepts no new requests and gives those under way `graceMs` to finish; its downloads resume next time. */
  async stop(graceMs: number): Promise<void> {
    clearInterval(this.#renewal)
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeIdleConnections()
    const timer = setTimeout(() => {
      for (const socket of this.#connections.keys()) socket.destroy()
    }, graceMs)
    await closed
    clearTimeout(timer)
    this.#stopping.abort(new Error('the gateway stops'))
    await this.#copies.close()
    this.#counts.flush()
  }

  /** Answers if nothing must be asked or waited for; returns whether it did. */
  #answerAtOnce(request: IncomingMessage, response: ServerResponse): boolean {
    const catalog = this.#catalog.known
    if (catalog === undefined) return false
    const head = { 'x-amz-request-id': this.#nextRequestId(), server: 'dsc' }
    const answered = answerAtOnce(
      { access: this.#access, copies: this.#copies, catalog, names: this.#names },
      { request, response, pins: this.#pinsOf(request), head },
    )
    if (answered === undefined) return false
    this.#counts.sent({ from: 'ready', bytes: answered.bytes })
    this.#counts.answered(answered.operation, response.statusCode)
    return true
  }

  #nextRequestId(): string {
    return `${this.#id}-${++this.#requests}`
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    letWait(response, IDLE_TIMEOUT_MS)
    const requestId = this.#nextRequestId()
    response.setHeader('x-amz-request-id', requestId)
    response.setHeader('server', 'dsc')
    let operation: S3Operation | undefined
    try {
      const { datasets, served, buckets } = await this.#catalog.read()
      const { method = '', url = '' } = request
      const hostBucket = findHostBucket(this.#names.read(request.headers.host), buckets)
      const isOfBucket = buckets.has(firstName(url)) || hostBucket !== undefined
      const hub = isOfBucket ? undefined : parseHubRequest(url)
      if (hub) {
        const scheme = this.#names.schemeOf(request.headers.host)
        await this.#answerHub(hub, datasets, { request, response, scheme })
        return
      }
      await this.#access.authorize(request)
      operation = parseS3Request({ method, url, hostBucket })
      const requireReader = await this.#judgeReaders(datasets, request)
      await this.#carryOut(operation, served, { request, response, requireReader })
    } catch (error) {
      if (response.headersSent || response.destroyed)
        response.destroy() // the client sees that the answer is cut short
      else sendS3Error(toS3Error(error), { request, response, requestId })
    } finally {
      this.#counts.answered(operation?.kind ?? 'none', response.statusCode)
    }
  }

  #judgeReaders(datasets: readonly Dataset[], request: IncomingMessage): Promise<RequireReader> {
    return judgeReaders(datasets, this.#options.rules, () => this.#access.identify(request))
  }

  /** Answers a client of a Hugging Face hub. */
  async #answerHub(
    operation: HubOperation,
    datasets: readonly Dataset[],
    exchange: HubExchange,
  ): Promise<void> {
    const { request, response } = exchange
    const { tokens } = this.#options
    response.removeHeader('x-amz-request-id')
    try {
      if (!(await this.#access.isTrusted(request))) requireHubToken(request.headers.authorization, tokens)
      const client = {
        copies: this.#copies,
        pins: this.#pinsOf(request),
        untilGone: () => this.#untilGone(response),
        onSent: (sent: Sent) => this.#counts.sent(sent),
        requireReader: await this.#judgeReaders(datasets, request),
      }
      await answerHub(operation, (of) => findRepository(datasets, of, client), exchange)
    } catch (error) {
      if (response.headersSent || response.destroyed) response.destroy()
      else refuseHub(exchange, toHubRefusal(error, exchange))
    }
  }

  /** Aborts when the client or the gateway goes. */
  #untilGone(response: ServerResponse): AbortSignal {
    const gone = new AbortController()
    response.once('close', () => gone.abort(new Error('the client has gone')))
    return AbortSignal.any([gone.signal, this.#stopping.signal])
  }

  async #carryOut(
    operation: S3Operation,
    served: readonly ServedDataset[],
    exchange: {
      readonly request: IncomingMessage
      readonly response: ServerResponse
      readonly requireReader: RequireReader
    },
  ): Promise<void> {
    const { request, response, requireReader } = exchange
    const send = (body: string) =>
      response
        .writeHead(200, { 'content-type': 'application/xml', 'content-length': Buffer.byteLength(body) })
        .end(body)
    if (operation.kind === 'ListBuckets') {
      const readable = served.filter(({ dataset }) => isReadable(dataset, requireReader))
      send(formatBuckets(operation, [...new Set(readable.map(({ bucket }) => bucket))].toSorted()))
      return
    }
    const inBucket = served.filter(({ bucket }) => bucket === operation.bucket)
    if (inBucket.length === 0) throw undeclared(operation.bucket, '')
    const readable = inBucket.filter(({ dataset }) => isReadable(dataset, requireReader))
    if (readable.length === 0) requireReader(inBucket[0]!.dataset)
    const pins = this.#pinsOf(request)
    switch (operation.kind) {
      case 'HeadBucket':
        response.writeHead(200, { 'x-amz-bucket-region': 'us-east-1' }).end()
        return
      case 'GetBucketLocation':
        send(formatLocation())
        return
      case 'GetBucketVersioning':
        send(formatVersioning())
        return
      case 'ListObjects':
      case 'ListObjectsV2':
        send(
          formatListing(
            operation,
            await listBucket(operation, { copies: this.#copies, inBucket: readable, pins }),
          ),
        )
        return
      case 'GetObject':
      case 'HeadObject': {
        const found = findServed(inBucket, operation.bucket, operation.key)
        if (!found) throw undeclared(operation.bucket, operation.key)
        requireReader(found.dataset)
        const asked = {
          dataset: found.dataset,
          key: operation.key.slice(found.prefix.length),
          versionId: operation.versionId,
          partNumber: operation.partNumber,
          answerHeaders: operation.headers,
        }
        const untilGone = () => this.#untilGone(response)
        this.#counts.sent(await sendObject(this.#copies, asked, { request, response, pins, untilGone }))
      }
    }
  }

  /** The versions that a connection reads; none if it has closed. */
  #pinsOf({ socket }: IncomingMessage): Pins {
    return this.#connections.get(socket) ?? new Map()
  }
}

/** The first path segment of a target: `/bucket/key` or `/organisation/…`. */
function firstName(target: string): string {
  return target.split('?', 1)[0]!.split('/')[1] ?? ''
}
