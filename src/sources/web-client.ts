import { isDscError } from '../failure/dsc-error.js'
import { SourceFailure } from '../failure/source-failure.js'
import { throwIfStopped } from '../failure/throw-if-stopped.js'
import type { Headers } from '../http/answer-listener.js'
import { findProxy, type HttpProxy } from '../http/find-proxy.js'
import { HttpPool } from '../http/http-pool.js'
import { isLocalHost } from '../http/local-address.js'
import { type Answer, readAnswer } from '../http/read-answer.js'
import { BoundedMap } from '../model/bounded-map.js'
import { DEFAULT_STALL_TIMEOUT_MS } from '../model/stall-timeout.js'
import type { AnswerDialect } from './answer-handler.js'
import { withRetries } from './retry.js'
import type { ListOptions } from './source.js'

const MAX_REDIRECTS = 5
const MAX_REMEMBERED = 256
const MAX_ERROR_BODY_BYTES = 16_384
const REDIRECTS = new Set([301, 302, 303, 307, 308])

/** Headers that authorize this caller; none: anonymous. */
export type Authorize = () => Promise<Readonly<Record<string, string>>> | Readonly<Record<string, string>>

/** Settings for requests to web servers. */
export interface WebClientOptions {
  /** Maximum connections to one server. */
  readonly connections: number
  /** Certificates (PEM) that must have signed servers' own; undefined = those that Node.js trusts. */
  readonly ca: string | undefined
  /** For the first server of a request only, never for one that it redirects to. */
  readonly authorize: Authorize
  /**
   * URL of the source: lists and redirects may lead from its host to others, but not to this machine or its link, where
   * their author could not read.
   */
  readonly home: string
}

/** One server on the way to an answer. */
export interface Hop {
  readonly pool: HttpPool
  readonly origin: string
  /** Percent-encoded, with query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly proxy: HttpProxy | undefined
}

/** A redirect: thrown by the request, then followed. */
class Redirect extends SourceFailure {
  readonly location: string

  constructor(what: string, location: string) {
    super('SOURCE_UNREACHABLE', `${what}: the server leads in circles`, {
      hint: 'check the source’s URL and its endpoint',
    })
    this.location = location
  }
}

/** The redirect in an answer; undefined: it is the final answer. */
export function findRedirect(what: string, status: number, headers: Headers): Redirect | undefined {
  return REDIRECTS.has(status) && headers.location !== undefined
    ? new Redirect(what, headers.location)
    : undefined
}

/** A request that is answered by a text. */
interface WebQuestion extends Pick<ListOptions, 'onRetry' | 'stallTimeoutMs' | 'signal'> {
  /** The requested resource, for messages. */
  readonly what: string
  readonly dialect: Omit<AnswerDialect, 'readFacts'>
  /** Most of the answer, bytes. Default: as for a page of a listing. */
  readonly maxBytes?: number | undefined
}

/** Keep-alive connections to the servers of URLs. The target of a redirect is remembered while it works. */
export class WebClient {
  readonly #options: WebClientOptions
  readonly #homeHost: string
  readonly #servers = new Map<string, { readonly pool: HttpPool; readonly proxy: HttpProxy | undefined }>()
  readonly #led = new BoundedMap<string, string>(MAX_REMEMBERED)

  constructor(options: WebClientOptions) {
    this.#options = options
    this.#homeHost = new URL(options.home).hostname
  }

  /** Asks at `start`, and follows each Redirect that `ask` throws. */
  async follow<Value>(start: string, ask: (hop: Hop) => Promise<Value>): Promise<Value> {
    const remembered = this.#led.get(start)
    if (remembered !== undefined) {
      try {
        return await ask(await this.#hopTo(remembered, start))
      } catch (error) {
        this.#led.delete(start)
        // A signed URL has expired: ask its origin for a new one.
        if (!isDscError(error, 'SOURCE_DENIED', 'SOURCE_NOT_FOUND')) throw error
      }
    }
    let url = start
    for (let redirects = 0; ; redirects += 1) {
      try {
        const value = await ask(await this.#hopTo(url, start))
        if (url !== start) this.#led.set(start, url)
        return value
      } catch (error) {
        if (!(error instanceof Redirect) || redirects === MAX_REDIRECTS) throw error
        url = leadOn(url, error)
      }
    }
  }

  /** Reads a whole text, such as a listing, with retries. */
  readText(start: string, question: WebQuestion): Promise<Answer> {
    return withRetries(() => this.follow(start, (hop) => ask('GET', hop, question)), question)
  }

  /**
   * Reads the head of an answer, with retries. For a URL signed for GET, and a server that refuses HEAD or does not
   * give the length, it sends a GET and does not read the body; also for length 0, with which servers answer HEAD for
   * pages that they make on request.
   */
  async readHead(start: string, question: WebQuestion): Promise<Headers> {
    const read = (method: 'GET' | 'HEAD') =>
      withRetries(
        () =>
          this.follow(start, (hop) =>
            method === 'HEAD' ? ask('HEAD', hop, question) : askForHead(hop, question),
          ),
        question,
      )
    try {
      const { headers } = await read('HEAD')
      const { 'content-length': length } = headers
      if (length === '0') return await read('GET').then((got) => got.headers, keepIfEmpty(headers))
      if (length !== undefined) return headers
    } catch (error) {
      if (!isDscError(error, 'SOURCE_DENIED', 'SOURCE_UNREACHABLE') || isTransient(error)) throw error
    }
    return (await read('GET')).headers
  }

  /** Closes all connections; running and waiting requests fail. */
  close(): void {
    for (const { pool } of this.#servers.values()) pool.close()
  }

  async #hopTo(raw: string, start: string): Promise<Hop> {
    const { origin, host, hostname, pathname, search } = new URL(raw)
    const from = new URL(start)
    const isStart = origin === from.origin
    const isLed = hostname !== from.hostname // by a redirect, not by a line of a list
    const mayBeLocal = hostname === this.#homeHost || (isLed && isLocalHost(this.#homeHost))
    if (!mayBeLocal && isLocalHost(hostname)) throw refuseLocal(this.#homeHost, host)
    const authorization = isStart ? await this.#options.authorize() : {}
    const headers = { host, 'accept-encoding': 'identity', ...authorization }
    return { ...this.#connect(origin, mayBeLocal), origin, path: pathname + search, headers }
  }

  #connect(origin: string, mayBeLocal: boolean) {
    const { connections, ca } = this.#options
    const known = this.#servers.get(origin)
    if (known) return known
    const proxy = findProxy(origin, process.env)
    const server = {
      pool: new HttpPool(origin, { connections, ca, proxy, refusesLocal: !mayBeLocal }),
      proxy,
    }
    this.#servers.set(origin, server)
    return server
  }
}

/** The URL of a redirect. An encrypted connection stays encrypted. */
function leadOn(from: string, redirect: Redirect): string {
  const to = URL.parse(redirect.location, from)
  const isUsable = to?.protocol === 'https:' || (to?.protocol === 'http:' && from.startsWith('http:'))
  if (to && isUsable) return to.href
  const { origin } = new URL(from)
  throw new SourceFailure(
    'SOURCE_UNREACHABLE',
    `${origin} leads to ${to ? to.protocol : 'what is no URL'}, which is not followed`,
    { hint: 'expected a redirect to https:// (or http:// from http://)' },
  )
}

function refuseLocal(home: string, host: string): SourceFailure {
  return new SourceFailure('SOURCE_UNREACHABLE', `${home} leads to ${host}, which is this node itself`, {
    hint: 'use that URL as a source of its own, if you mean this node',
  })
}

/** An empty file has no first byte (416). */
function keepIfEmpty(headers: Headers): (error: unknown) => Headers {
  return (error) => {
    if (isDscError(error, 'SOURCE_CHANGED')) return headers
    throw error
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof SourceFailure && error.isTransient
}

/** Requests the first byte and closes the connection; `content-length` is then that of the whole. */
function askForHead(hop: Hop, question: WebQuestion): Promise<Pick<Answer, 'headers'>> {
  const { what, dialect, signal, stallTimeoutMs = DEFAULT_STALL_TIMEOUT_MS } = question
  const { pool, origin, path, proxy } = hop
  throwIfStopped(signal)
  const headers = { ...hop.headers, range: 'bytes=0-0' }
  return new Promise((resolve, reject) => {
    const listener = {
      onHead(status: number, found: Headers) {
        setImmediate(() => control.cancel())
        if (status < 200 || status > 299) {
          const refused = { what, status, headers: found, body: '', nowMs: Date.now() }
          reject(findRedirect(what, status, found) ?? dialect.describeAnswer(refused))
          return
        }
        const { 'content-length': length, ...rest } = found
        const total =
          /\/(\d+)$/.exec(found['content-range'] ?? '')?.[1] ?? (status === 206 ? undefined : length)
        resolve({ headers: total === undefined ? rest : { ...rest, 'content-length': total } })
      },
      onData() {},
      onEnd() {},
      onError(error: Error) {
        const about = {
          what,
          origin,
          proxy: proxy?.url,
          receivedBytes: undefined,
          expectedBytes: 0,
          stallTimeoutMs,
        }
        reject(dialect.describeConnectionError(error, about))
      },
    }
    const control = pool.send({ method: 'GET', path, headers, stallTimeoutMs }, listener)
    signal?.addEventListener(
      'abort',
      () => {
        control.cancel()
        reject(signal.reason)
      },
      { once: true },
    )
  })
}

/** Sends one request to one server. */
async function ask(method: 'GET' | 'HEAD', hop: Hop, question: WebQuestion): Promise<Answer> {
  const { what, dialect, signal, stallTimeoutMs = DEFAULT_STALL_TIMEOUT_MS } = question
  const { pool, origin, path, headers, proxy } = hop
  throwIfStopped(signal)
  const progress = { hasAnswer: false }
  const request = { method, path, headers, stallTimeoutMs }
  const answer = await readAnswer(pool, request, { signal, progress, maxBytes: question.maxBytes }).catch(
    (error: unknown) => {
      throwIfStopped(signal)
      const receivedBytes = progress.hasAnswer ? 0 : undefined
      const about = { what, origin, proxy: proxy?.url, receivedBytes, expectedBytes: 0, stallTimeoutMs }
      throw dialect.describeConnectionError(error as Error, about)
    },
  )
  const { status } = answer
  if (status >= 200 && status <= 299) return answer
  const body = answer.body.toString('utf8', 0, MAX_ERROR_BODY_BYTES)
  const refused = { what, status, headers: answer.headers, body, nowMs: Date.now() }
  throw findRedirect(what, status, answer.headers) ?? dialect.describeAnswer(refused)
}
