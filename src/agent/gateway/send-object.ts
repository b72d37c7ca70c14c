import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { filesDirectory } from '../../cache/cache-layout.js'
import { isDscError } from '../../failure/dsc-error.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import { withRetries } from '../../sources/retry.js'
import { sendCopyFile } from '../copies/send-copy-file.js'
import type { GatewayCopies, Located, Pins } from './gateway-copies.js'
import { type AskedObject, findAnswer, headersOf, missing } from './object-answer.js'
import type { Passed } from './passed-datasets.js'
import type { ObjectAnswer } from './plan-object-answer.js'

/** A source that sends nothing for so long while it is passed through has stalled, ms. */
const STALL_TIMEOUT_MS = 60_000
/** When more than this waits for a slow client, the source waits, too, bytes. */
const MAX_WAITING_BYTES = 1024 * 1024
/** How long the source waits, ms: at first, and at most. After each wait a chunk comes, whatever the client took. */
const WAIT_MS = 10
const MAX_WAIT_MS = 1000

/** From where the bytes of an answer came. */
type SentFrom = 'ready' | 'arriving' | 'origin'

/** What a client got. */
export interface Sent {
  readonly from: SentFrom
  readonly bytes: number
}

/** Who asks. */
interface GatewayClient {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly pins: Pins
  /** Makes a signal that aborts when the client or the gateway goes. */
  readonly untilGone: () => AbortSignal
}

/**
 * Answers GET and HEAD of an object from wherever it can be read: the ready copy, the arriving one as soon as the
 * object is proven, else its source. Throws an S3Error before the first byte; what it throws later cuts the answer.
 */
export async function sendObject(
  copies: GatewayCopies,
  asked: AskedObject,
  client: GatewayClient,
): Promise<Sent> {
  return copies.untilFound([asked.dataset], async () => {
    const located = await copies.locate(asked.dataset, client.pins)
    return copies.use(located, () => trySending(copies, located, { ...client, asked }))
  })
}

/** Undefined: what was located has gone meanwhile. */
async function trySending(
  copies: GatewayCopies,
  located: Located,
  client: GatewayClient & { readonly asked: AskedObject },
): Promise<Sent | undefined> {
  const { asked, request, response, untilGone } = client
  const found = findAnswer(copies, located, { asked, headers: request.headers })
  if (found === undefined) return undefined
  const { entry, answer } = found
  const from = located.kind === 'passed' ? 'origin' : located.copy.state === 'ready' ? 'ready' : 'arriving'
  const hasBody = request.method === 'GET' && answer.status !== 304 && answer.length > 0
  if (!hasBody) {
    response.writeHead(answer.status, headersOf(request.headers, entry, answer)).end()
    return { from, bytes: 0 }
  }
  if (located.kind === 'passed') {
    await passThrough(located, { entry, answer, client })
    return { from, bytes: answer.length }
  }
  const path = `${filesDirectory(located.copy.directory)}/${entry.path}`
  if (from === 'arriving' && entry.state !== 'present') {
    const outcome = await copies.waitFor(located.copy, { entry, range: answer }, untilGone())
    if (outcome !== 'there') return undefined
  }
  try {
    const file = { root: copies.root, copy: located.copy, path, range: answer }
    await sendCopyFile(file, response, () => {
      response.writeHead(answer.status, headersOf(request.headers, entry, answer))
    })
    return { from, bytes: answer.length }
  } catch (error) {
    if (!response.headersSent && (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Sends a range as it comes from the source; an attempt that breaks off is gone on with where it ended. */
async function passThrough(
  passed: Passed,
  what: {
    readonly entry: ManifestEntry
    readonly answer: Exclude<ObjectAnswer, { status: 304 }>
    readonly client: GatewayClient
  },
): Promise<void> {
  const { entry, answer, client } = what
  const { request, response } = client
  const signal = client.untilGone()
  const fetcher = await passed.source.openFetcher({ connections: 1 })
  let passedBytes = 0
  let waitMs = 0
  try {
    await withRetries(
      () =>
        fetcher.fetch({
          key: entry.key,
          etag: entry.etag,
          versionId: entry.versionId,
          checksum: entry.checksum,
          sizeBytes: entry.sizeBytes,
          offset: answer.offset + passedBytes,
          length: answer.length - passedBytes,
          stallTimeoutMs: STALL_TIMEOUT_MS,
          signal,
          sink: (chunk) => {
            if (!response.headersSent)
              response.writeHead(answer.status, headersOf(request.headers, entry, answer))
            response.write(Buffer.from(chunk)) // its memory takes the next bytes
            passedBytes += chunk.length
            const isSlow = response.writableLength > MAX_WAITING_BYTES
            waitMs = isSlow ? Math.min(MAX_WAIT_MS, Math.max(WAIT_MS, 2 * waitMs)) : 0
            return waitMs
          },
        }),
      { signal },
    )
    while (response.writableLength > MAX_WAITING_BYTES && !signal.aborted) await sleep(WAIT_MS)
    response.end()
  } catch (error) {
    // It went after it was listed.
    if (!response.headersSent && isDscError(error, 'SOURCE_NOT_FOUND')) throw missing(entry)
    throw error
  } finally {
    await fetcher.close()
  }
}
