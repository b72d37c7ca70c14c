import { SourceFailure } from '../../failure/source-failure.js'
import { HttpPool, type HttpRequest } from '../../http/http-pool.js'
import { type Answer, AnswerRoom, readAnswer } from '../../http/read-answer.js'
import { DEFAULT_STALL_TIMEOUT_MS } from '../../model/stall-timeout.js'
import type { Credentials } from '../own-access.js'
import { type OnRetry, withRetries } from '../retry.js'
import { readErrorBody } from './error-body.js'
import { type ListingPage, parseListing } from './parse-listing.js'
import { describeAnswer, describeConnectionError } from './s3-failure.js'
import type { S3Location } from './s3-fetcher.js'
import { encodeKey, Signer } from './sign-request.js'

/** The part to list. Keys and folders are relative to the source's prefix. */
export interface PageQuestion {
  /** Only keys that begin with this. Default: all. */
  readonly below?: string | undefined
  /** Only keys after this one. */
  readonly startAfter?: string | undefined
  /** Continues where a page ended. */
  readonly continuation?: string | undefined
  /** Only keys after this one, for version 1 of the listing. */
  readonly marker?: string | undefined
  /** Looks for the one object that has the name of the prefix without its final slash; its key is then empty. */
  readonly isOfObject?: boolean | undefined
  /** Groups keys that contain this after `below` into folders. */
  readonly delimiter?: string | undefined
}

/** Requests one page (up to 1,000 keys), with retries. */
export type ListPage = (question: PageQuestion, limits: PageLimits) => Promise<ListingPage>

/** Limits of one request. */
export interface PageLimits {
  readonly signal: AbortSignal
  /** An attempt fails after this long without a byte, in ms. Default 30,000. */
  readonly stallTimeoutMs?: number | undefined
  readonly onRetry?: OnRetry | undefined
}

interface AskLimits extends PageLimits {
  readonly room: AnswerRoom
}

/** How to reach a bucket. */
export interface S3Access {
  readonly location: S3Location
  readonly getCredentials: () => Promise<Credentials> | Credentials | undefined
}

const MAX_CONNECTIONS = 64
const MAX_ERROR_BODY_BYTES = 16_384

/** Lists pages with signed requests over keep-alive connections, following the bucket to its region. */
export class PageLister {
  readonly #open: (region?: string) => Promise<S3Access>
  #connection: Promise<Connection> | undefined
  /** Buffers of answers that have been read, for reuse. */
  readonly #rooms: AnswerRoom[] = []

  constructor(open: (region?: string) => Promise<S3Access>) {
    this.#open = open
  }

  async listPage(question: PageQuestion, limits: PageLimits): Promise<ListingPage> {
    const room = this.#rooms.pop() ?? new AnswerRoom()
    const page = await withRetries(() => this.#ask(question, { ...limits, room }), limits)
    this.#rooms.push(room) // after a failure something may still be writing into it
    return page
  }

  async close(): Promise<void> {
    ;(await this.#connection?.catch(() => undefined))?.pool.close()
  }

  async #ask(question: PageQuestion, limits: AskLimits): Promise<ListingPage> {
    this.#connection ??= connect(this.#open)
    const current = this.#connection
    const connection = await current
    const { location } = connection.access
    const answer = await send(connection, question, limits)
    const region = answer.headers['x-amz-bucket-region'] ?? readErrorRegion(answer)
    const mayBeElsewhere = answer.status === 301 || answer.status === 307 || answer.status === 400
    if (!mayBeElsewhere || region === undefined || region === location.region)
      return readPage(answer, { ...location, prefix: prefixOf(question, location.prefix) })
    if (this.#connection === current) {
      this.#connection = connect(this.#open, region)
      connection.pool.close()
    }
    return this.#ask(question, limits)
  }
}

/** Some servers name the region only in the text of their refusal. */
function readErrorRegion({ status, body }: Answer): string | undefined {
  if (status < 300) return undefined
  return /<Region>([a-z0-9-]+)<\/Region>/.exec(body.toString('utf8', 0, MAX_ERROR_BODY_BYTES))?.[1]
}

interface Connection {
  readonly access: S3Access
  readonly pool: HttpPool
  readonly signer: Signer
}

async function connect(open: (region?: string) => Promise<S3Access>, region?: string): Promise<Connection> {
  const access = await open(region)
  const { origin, ca, proxy } = access.location
  const pool = new HttpPool(origin, { connections: MAX_CONNECTIONS, ca, proxy })
  return { access, pool, signer: new Signer(access.location.region, access.location.service) }
}

async function send(
  { access, pool, signer }: Connection,
  question: PageQuestion,
  { signal, room, stallTimeoutMs = DEFAULT_STALL_TIMEOUT_MS }: AskLimits,
): Promise<Answer> {
  const { location, getCredentials } = access
  const { basePath, host, origin, requesterPays } = location
  const path = basePath.length > 1 ? basePath.replace(/\/$/, '') : basePath
  const query = formatQuery(question, location.prefix)
  const amzHeaders: Record<string, string> = requesterPays ? { 'x-amz-request-payer': 'requester' } : {}
  const credentials = await getCredentials()
  const headers = credentials
    ? signer.sign({ method: 'GET', path, query, host, headers: amzHeaders }, credentials, Date.now())
    : { ...amzHeaders, host }
  const progress = { hasAnswer: false }
  try {
    const request: HttpRequest = { method: 'GET', path: `${path}?${query}`, headers, stallTimeoutMs }
    return await readAnswer(pool, request, { signal, progress, room })
  } catch (error) {
    throw describeConnectionError(error, {
      what: nameOf(location),
      origin,
      bucket: location.bucket,
      proxy: location.proxy?.url,
      receivedBytes: progress.hasAnswer ? 0 : undefined,
      expectedBytes: 0,
      stallTimeoutMs,
    })
  }
}

function prefixOf({ isOfObject }: PageQuestion, folder: string): string {
  return isOfObject ? folder.slice(0, -1) : folder
}

/** Sorted by name, as the signature requires. */
function formatQuery(question: PageQuestion, folder: string): string {
  const prefix = prefixOf(question, folder)
  const { below = '', startAfter, continuation, marker, delimiter } = question
  const values: [string, string | undefined][] = [
    ['continuation-token', continuation],
    ['delimiter', delimiter],
    ['encoding-type', 'url'],
    ['list-type', marker === undefined ? '2' : undefined],
    ['marker', marker === undefined ? undefined : prefix + marker],
    ['prefix', prefix + below],
    ['start-after', startAfter === undefined ? undefined : prefix + startAfter],
  ]
  return values
    .filter((pair): pair is [string, string] => pair[1] !== undefined)
    .map(([name, value]) => `${name}=${encodeKey(value).replaceAll('/', '%2F')}`)
    .join('&')
}

function readPage({ status, headers, body }: Answer, location: S3Location): ListingPage {
  const what = nameOf(location)
  if (status < 200 || status > 299) {
    const text = body.toString('utf8', 0, MAX_ERROR_BODY_BYTES)
    throw describeAnswer({ what, status, headers, nowMs: Date.now(), ...readErrorBody(text) })
  }
  let page: ListingPage | undefined
  try {
    page = parseListing(body, location.prefix)
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    throw new SourceFailure('SOURCE_UNREACHABLE', `${what}: the listing has a key that is not UTF-8`, {
      cause: error,
      hint: 'the server’s listing is broken; check the endpoint',
    })
  }
  if (page) return page
  throw new SourceFailure('SOURCE_TRUNCATED', `${what}: the answer is no complete listing`, {
    isTransient: true,
    hint: 'check the endpoint: is it an S3 server?',
  })
}

function nameOf(location: S3Location): string {
  return `s3://${location.bucket}/${location.prefix}`
}
