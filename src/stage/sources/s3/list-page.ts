import type { Headers } from '../../http/http-connection.js'
import { HttpPool } from '../../http/http-pool.js'
import { type OnRetry, withRetries } from '../../retry.js'
import { SourceFailure } from '../../source-failure.js'
import { type ListingPage, parseListing } from './parse-listing.js'
import { describeAnswer, describeConnectionError } from './s3-failure.js'
import type { S3Location } from './s3-fetcher.js'
import { type Credentials, createSigner, encodeKey } from './sign-request.js'

/** What to list. Keys and folders are relative to the source's prefix. */
export interface PageQuestion {
  /** Only keys with this beginning. Default: all. */
  readonly below?: string | undefined
  /** Only keys after this one. */
  readonly startAfter?: string | undefined
  /** Goes on where a page ended. */
  readonly continuation?: string | undefined
  /** Keys with one more of this after `below` are told as folders. */
  readonly delimiter?: string | undefined
}

/** Asks for one page (up to 1,000 keys), with retries. */
export type ListPage = (
  question: PageQuestion,
  signal: AbortSignal,
  onRetry?: OnRetry,
) => Promise<ListingPage>

/** How a bucket is reached. */
export interface S3Access {
  readonly location: S3Location
  readonly getCredentials: () => Promise<Credentials> | Credentials | undefined
}

const STALL_TIMEOUT_MS = 60_000
const MAX_CONNECTIONS = 64
const MAX_ERROR_BODY_BYTES = 16_384

/** Lists pages with signed requests over keep-alive connections, following the bucket to its region. */
export function openPageLister(open: (region?: string) => Promise<S3Access>): {
  readonly listPage: ListPage
  readonly close: () => Promise<void>
} {
  let opening: ReturnType<typeof connect> | undefined
  const use = (region?: string) => {
    if (region !== undefined) void opening?.then(({ pool }) => pool.close()).catch(() => {})
    if (opening === undefined || region !== undefined) opening = connect(open, region)
    return opening
  }
  const ask = async (question: PageQuestion, signal: AbortSignal): Promise<ListingPage> => {
    const connection = await use()
    const { location } = connection.access
    const answer = await send(connection, question, signal)
    const region = answer.headers['x-amz-bucket-region']
    const mayBeElsewhere = answer.status === 301 || answer.status === 307 || answer.status === 400
    if (mayBeElsewhere && region !== undefined && region !== location.region) {
      if ((await use()) === connection) await use(region)
      return ask(question, signal)
    }
    return readPage(answer, location)
  }
  return {
    listPage: (question, signal, onRetry) => withRetries(() => ask(question, signal), { signal, onRetry }),
    close: async () => {
      ;(await opening?.catch(() => undefined))?.pool.close()
    },
  }
}

async function connect(open: (region?: string) => Promise<S3Access>, region?: string) {
  const access = await open(region)
  const pool = new HttpPool(access.location.origin, { connections: MAX_CONNECTIONS, ca: access.location.ca })
  return { access, pool, sign: createSigner(access.location.region) }
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Buffer
}

async function send(
  { access, pool, sign }: Awaited<ReturnType<typeof connect>>,
  question: PageQuestion,
  signal: AbortSignal,
): Promise<Answer> {
  const { location, getCredentials } = access
  const path = location.basePath.length > 1 ? location.basePath.replace(/\/$/, '') : location.basePath
  const query = formatQuery(question, location.prefix)
  const amzHeaders: Record<string, string> = location.requesterPays
    ? { 'x-amz-request-payer': 'requester' }
    : {}
  const credentials = await getCredentials()
  const unsigned = { method: 'GET', path, query, host: location.host, headers: amzHeaders } as const
  const headers = credentials
    ? sign(unsigned, credentials, Date.now())
    : { ...amzHeaders, host: location.host }
  let hasAnswer = false
  try {
    return await new Promise<Answer>((resolve, reject) => {
      const answer: { status: number; headers: Headers; chunks: Buffer[] } = {
        status: 0,
        headers: {},
        chunks: [],
      }
      const control = pool.send(
        { method: 'GET', path: `${path}?${query}`, headers, stallTimeoutMs: STALL_TIMEOUT_MS },
        {
          onHead: (status, found) => {
            hasAnswer = true
            Object.assign(answer, { status, headers: found })
          },
          onData: (chunk) => void answer.chunks.push(Buffer.from(chunk)),
          onEnd: () => {
            signal.removeEventListener('abort', stop)
            resolve({ ...answer, body: Buffer.concat(answer.chunks) })
          },
          onError: (error) => {
            signal.removeEventListener('abort', stop)
            reject(error)
          },
        },
      )
      const stop = () => {
        control.cancel()
        reject(signal.reason)
      }
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
    })
  } catch (error) {
    const { origin } = location
    throw describeConnectionError(error, {
      ...{ what: nameOf(location), origin, receivedBytes: hasAnswer ? 0 : undefined },
      ...{ expectedBytes: 0, stallTimeoutMs: STALL_TIMEOUT_MS },
    })
  }
}

/** Sorted by name, as the signature wants it. */
function formatQuery(question: PageQuestion, prefix: string): string {
  const { below = '', startAfter, continuation, delimiter } = question
  const values: [string, string | undefined][] = [
    ['continuation-token', continuation],
    ['delimiter', delimiter],
    ['encoding-type', 'url'],
    ['list-type', '2'],
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
    throw describeAnswer({
      ...{ what, status, headers, nowMs: Date.now() },
      code: /<Code>([^<]*)<\/Code>/.exec(text)?.[1] ?? '',
      message: /<Message>([^<]*)<\/Message>/.exec(text)?.[1] ?? '',
    })
  }
  let page: ListingPage | undefined
  try {
    page = parseListing(body, location.prefix)
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    throw new SourceFailure('SOURCE_UNREACHABLE', `${what}: the listing has a key that is not UTF-8`, {
      isTransient: false,
      cause: error,
      hint: 'the server’s listing is broken; check the endpoint',
    })
  }
  if (page) return page
  throw new SourceFailure('SOURCE_TRUNCATED', `${what}: the listing broke off or is none`, {
    isTransient: true,
    hint: 'check the endpoint: is it an S3 server?',
  })
}

function nameOf(location: S3Location): string {
  return `s3://${location.bucket}/${location.prefix}`
}
