import { type ConnectionOptions, createSecureContext } from 'node:tls'
import { formatElapsed, isLogged, log } from '../log/log.js'
import type { AnswerListener } from './answer-listener.js'
import type { HttpProxy } from './find-proxy.js'
import { type ConnectionTarget, HttpConnection } from './http-connection.js'
import { lookupElsewhere } from './local-address.js'
import { USER_AGENT } from './user-agent.js'

/** A request without body. */
export interface HttpRequest {
  readonly method: 'GET' | 'HEAD'
  /** Percent-encoded, with query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** More headers, which many requests share as one object: they are formatted once. */
  readonly shared?: Readonly<Record<string, string>>
  readonly stallTimeoutMs: number
}

/** Controls of a running request for its listener. */
export interface RequestControl {
  pause(): void
  resume(): void
  /** Ends the request; its listener gets no more calls. */
  cancel(): void
}

interface PoolOptions {
  /** Maximum number of connections. */
  readonly connections: number
  /** Certificates (PEM) of the authorities for the server's certificate; undefined = those that Node.js trusts. */
  readonly ca?: string | undefined
  /** Whom a certificate of those authorities may name. Default: the host of the origin. */
  readonly checkServerIdentity?: ConnectionOptions['checkServerIdentity']
  /** The proxy for requests; undefined: none. */
  readonly proxy?: HttpProxy | undefined
  /** Whether names that lead to this machine or its link are refused. Default: no. */
  readonly refusesLocal?: boolean
  /** Default 10,000. */
  readonly connectTimeoutMs?: number
  /**
   * A buffer of `READ_BYTES` for the reads of all connections, one at a time. Default: shared by all pools of this
   * thread.
   */
  readonly readBuffer?: Buffer
}

interface Waiting {
  readonly request: HttpRequest
  readonly head: string
  readonly listener: AnswerListener
  isCancelled: boolean
  connection: HttpConnection | undefined
}

const CONNECT_TIMEOUT_MS = 10_000
/** Servers and middleboxes drop idle connections, usually after a minute; do not reuse older ones than this. */
const MAX_IDLE_MS = 30_000
/** Matches bytes not allowed in a header: control characters, and everything beyond Latin-1. */
const UNSAFE_HEADER = /[^\t\x20-\x7e\x80-\xff]/

/**
 * Keep-alive connections to the server at `origin` (`https://host:port`); requests beyond their limit wait for one.
 *
 * dsc has its own client because of the cost per byte on the way to the disk: 200 objects of 1 MiB take 1.2 s of
 * processor time through it and 2.3 s through undici, which allocates its chunks one by one; between nodes, 2,000
 * objects of 100 KiB take 2.2 s instead of 3.2 s (`npm run bench -- peers`).
 */
export class HttpPool {
  readonly #origin: string
  readonly #target: ConnectionTarget
  readonly #limit: number
  readonly #forward: { readonly origin: string; readonly authorization: string | undefined } | undefined
  readonly #open = new Set<HttpConnection>()
  readonly #idle: HttpConnection[] = []
  readonly #waiting: Waiting[] = []
  #isClosed = false

  constructor(origin: string, options: PoolOptions) {
    const {
      connections,
      ca,
      checkServerIdentity,
      proxy,
      readBuffer,
      connectTimeoutMs = CONNECT_TIMEOUT_MS,
    } = options
    const url = new URL(origin)
    this.#origin = url.origin
    const isTls = url.protocol === 'https:'
    this.#target = {
      tls: isTls
        ? {
            ...(ca !== undefined && { secureContext: createSecureContext({ ca }) }),
            ...(checkServerIdentity && { checkServerIdentity }),
          }
        : undefined,
      hostname: url.hostname.replace(/^\[|\]$/g, ''),
      port: Number(url.port) || (isTls ? 443 : 80),
      connectTimeoutMs,
      lookup: options.refusesLocal ? lookupElsewhere : undefined,
      proxy,
      readBuffer,
    }
    // The proxy itself reads unencrypted requests: they need the whole URL.
    this.#forward = proxy && !isTls ? { origin: url.origin, authorization: proxy.authorization } : undefined
    this.#limit = connections
  }

  send(request: HttpRequest, listener: AnswerListener): RequestControl {
    const waiting: Waiting = {
      request,
      head: formatHead(this.#forward ? forward(request, this.#forward) : request),
      listener: isLogged('verbose')
        ? logAnswer(`${request.method} ${this.#origin}${request.path}${formatRange(request)}`, listener)
        : listener,
      isCancelled: false,
      connection: undefined,
    }
    // A connection may fail at once: callers expect the failure only after they have their control.
    this.#waiting.push(waiting)
    queueMicrotask(() => (this.#isClosed ? this.close() : this.#pump()))
    return {
      pause: () => waiting.connection?.pause(),
      resume: () => waiting.connection?.resume(),
      cancel: () => {
        waiting.isCancelled = true
        waiting.connection?.close()
      },
    }
  }

  /** Ends all connections; running and waiting requests fail. */
  close(): void {
    this.#isClosed = true
    for (const { listener, isCancelled } of this.#waiting.splice(0))
      if (!isCancelled) listener.onError(closed())
    for (const connection of [...this.#open]) connection.abandon(closed())
  }

  #pump(): void {
    while (!this.#isClosed && this.#waiting.length > 0) {
      if (this.#waiting[0]!.isCancelled) {
        this.#waiting.shift()
        continue
      }
      // Remove it from the list first: closing a connection that was idle for too long reenters this function.
      const next = this.#waiting.shift()!
      const connection = this.#takeIdle() ?? this.#connect()
      if (connection === undefined) {
        this.#waiting.unshift(next)
        return
      }
      this.#sendOver(connection, next)
    }
  }

  #sendOver(connection: HttpConnection, waiting: Waiting): void {
    const { request, head, listener } = waiting
    waiting.connection = connection
    const isReused = connection.wasUsed
    const { method, stallTimeoutMs } = request
    connection.send(
      { head, method, stallTimeoutMs },
      {
        onHead: (status, headers) => listener.onHead(status, headers),
        onData: (chunk) => listener.onData(chunk),
        findRoom: () => listener.findRoom?.(),
        onEnd: () => {
          waiting.connection = undefined
          listener.onEnd()
        },
        onError: (error) => {
          waiting.connection = undefined
          // The server closed an idle connection just as the request went out. Reading twice does no harm.
          const isStale =
            isReused && !connection.hasAnswer && (error as { code?: unknown }).code !== 'HTTP_STALLED'
          if (isStale && !this.#isClosed) {
            this.#waiting.unshift(waiting)
            this.#pump()
          } else listener.onError(error)
        },
      },
    )
  }

  #takeIdle(): HttpConnection | undefined {
    for (;;) {
      const connection = this.#idle.pop()
      if (connection === undefined) return undefined
      if (performance.now() - connection.idleSinceMs < MAX_IDLE_MS) return connection
      connection.close()
    }
  }

  #connect(): HttpConnection | undefined {
    if (this.#open.size >= this.#limit) return undefined
    const connection = new HttpConnection(this.#target, {
      onIdle: (idle) => {
        this.#idle.push(idle)
        this.#pump()
      },
      onClose: (closed) => {
        this.#open.delete(closed)
        const at = this.#idle.indexOf(closed)
        if (at !== -1) this.#idle.splice(at, 1)
        this.#pump()
      },
    })
    this.#open.add(connection)
    return connection
  }
}

/** The error of requests that will never be sent. */
function closed(): Error {
  return new Error('the connections were closed')
}

/** ` bytes=0-9` for a range request. */
function formatRange({ headers }: HttpRequest): string {
  return headers.range === undefined ? '' : ` ${headers.range}`
}

/** The request in the form that a forwarding proxy expects. */
function forward(
  request: HttpRequest,
  { origin, authorization }: { readonly origin: string; readonly authorization: string | undefined },
): HttpRequest {
  const headers = authorization
    ? { ...request.headers, 'proxy-authorization': authorization }
    : request.headers
  return { ...request, path: `${origin}${request.path}`, headers }
}

function formatHead({ method, path, headers, shared }: HttpRequest): string {
  const agent = headers['user-agent'] === undefined ? `user-agent: ${USER_AGENT}\r\n` : ''
  const more = shared === undefined ? '' : formatShared(shared)
  return `${method} ${path} HTTP/1.1\r\n${agent}${more}${formatHeaders(headers)}\r\n`
}

/** Lines of headers that many requests share. */
const formatted = new WeakMap<Readonly<Record<string, string>>, string>()

function formatShared(shared: Readonly<Record<string, string>>): string {
  let lines = formatted.get(shared)
  if (lines === undefined) {
    lines = formatHeaders(shared)
    formatted.set(shared, lines)
  }
  return lines
}

function formatHeaders(headers: Readonly<Record<string, string>>): string {
  let lines = ''
  for (const name in headers) {
    const value = headers[name]!
    if (UNSAFE_HEADER.test(value))
      throw new RangeError(`header ${name} has characters that HTTP does not allow`)
    lines += `${name}: ${value}\r\n`
  }
  return lines
}

/** Wraps `listener` to log the outcome of the request `what`, with its time and bytes. */
function logAnswer(what: string, listener: AnswerListener): AnswerListener {
  const beganMs = performance.now()
  let status = 0
  let bytes = 0
  return {
    onHead(found, headers) {
      status = found
      listener.onHead(found, headers)
    },
    onData(chunk) {
      bytes += chunk.length
      listener.onData(chunk)
    },
    findRoom: () => listener.findRoom?.(),
    onEnd() {
      log('verbose', `${what}: ${status}, ${bytes} bytes in ${formatElapsed(beganMs)}`)
      listener.onEnd()
    },
    onError(error) {
      log('verbose', `${what}: ${error.message} after ${bytes} bytes and ${formatElapsed(beganMs)}`)
      listener.onError(error)
    },
  }
}
