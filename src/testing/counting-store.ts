import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { listenLocally } from './listen-locally.js'

/** A read-only S3 bucket in memory that counts reads, for tests of how much each node reads from where. */
export interface CountingStore {
  readonly endpoint: string
  /** Body bytes sent, excluding listings and answers of one byte: those check that ranges are honored. */
  sentBytes(): number
  requests(): number
  /** Maximum number of concurrent requests. */
  mostInFlight(): number
  /**
   * Blocks requests for the last byte of `key` and at least `minBytes` (default 0), until the returned function is
   * called.
   */
  holdBack(key: string, minBytes?: number): () => void
  /** Puts an object, replacing any previous one. */
  put(key: string, body: Buffer): void
  /** Stops answering: connections are refused. */
  close(): Promise<void>
}

/**
 * Serves `given` (key → content) under any bucket. `bytesPerSecond` slows each answer down, `delayMs` delays it.
 * `hasChecksums`: stores a CRC-32 with its objects, as most clients upload them, and returns it on request.
 * `isKmsEncrypted`: as with SSE-KMS, etags look like an MD5 but are not; only the head of an object reveals that, not
 * the listing.
 */
export async function startCountingStore(
  given: ReadonlyMap<string, Buffer>,
  options: {
    readonly bytesPerSecond?: number
    readonly delayMs?: number
    readonly hasChecksums?: boolean
    readonly isKmsEncrypted?: boolean
  } = {},
): Promise<CountingStore> {
  const objects = new Map(given)
  let sentBytes = 0
  let requests = 0
  let inFlight = 0
  let mostInFlight = 0
  const held = new Map<string, { readonly minBytes: number; readonly letGo: Promise<void> }>()
  const etagOf = (body: Buffer) =>
    createHash('md5')
      .update(options.isKmsEncrypted ? 'encrypted ' : '')
      .update(body)
      .digest('hex')
  const etags = new Map([...objects].map(([key, body]) => [key, etagOf(body)] as const))
  const server = createServer(async (request, response) => {
    requests += 1
    inFlight += 1
    mostInFlight = Math.max(mostInFlight, inFlight)
    response.once('close', () => {
      inFlight -= 1
    })
    if (options.delayMs !== undefined) await sleep(options.delayMs)
    const url = new URL(request.url ?? '/', 'http://store')
    if (url.searchParams.get('list-type') === '2') {
      const prefix = url.searchParams.get('prefix') ?? ''
      const contents = [...objects]
        .filter(([key]) => key.startsWith(prefix))
        .sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
        .map(
          ([key, body]) =>
            `<Contents><Key>${key}</Key><Size>${body.length}</Size><ETag>"${etags.get(key)}"</ETag>` +
            '<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>',
        )
      response.writeHead(200, { 'content-type': 'application/xml' })
      response.end(
        `<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`,
      )
      return
    }
    const key = decodeURIComponent(url.pathname).split('/').slice(2).join('/')
    const body = objects.get(key)
    if (body === undefined) {
      response.writeHead(404).end()
      return
    }
    const match = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
    const [first, last] = match ? [Number(match[1]), Number(match[2])] : [0, body.length - 1]
    const hold = held.get(key)
    const isHeld = last === body.length - 1 && last + 1 - first >= (hold?.minBytes ?? 0)
    if (request.method === 'GET' && isHeld) await hold?.letGo
    if (response.destroyed) return
    const part = body.subarray(first, last + 1)
    response.writeHead(match ? 206 : 200, {
      etag: `"${etags.get(key)}"`,
      'content-length': part.length,
      ...(options.isKmsEncrypted ? { 'x-amz-server-side-encryption': 'aws:kms' } : {}),
      ...(match ? { 'content-range': `bytes ${first}-${last}/${body.length}` } : {}),
      ...(options.hasChecksums && !match && request.headers['x-amz-checksum-mode'] === 'ENABLED'
        ? { 'x-amz-checksum-crc32': formatCrc32(body), 'x-amz-checksum-type': 'FULL_OBJECT' }
        : {}),
    })
    if (request.method === 'HEAD') {
      response.end()
      return
    }
    const step = options.bytesPerSecond === undefined ? part.length : options.bytesPerSecond / 20
    for (let at = 0; at < part.length && !response.destroyed; at += step) {
      const chunk = part.subarray(at, at + step)
      if (part.length > 1) sentBytes += chunk.length
      response.write(chunk)
      if (options.bytesPerSecond !== undefined) await sleep(50)
    }
    response.end()
  })
  const port = await listenLocally(server)
  return {
    endpoint: `http://127.0.0.1:${port}`,
    sentBytes: () => sentBytes,
    requests: () => requests,
    mostInFlight: () => mostInFlight,
    holdBack(key, minBytes = 0) {
      const { promise: letGo, resolve } = Promise.withResolvers<void>()
      held.set(key, { minBytes, letGo })
      return () => {
        held.delete(key)
        resolve()
      }
    },
    put(key, body) {
      objects.set(key, body)
      etags.set(key, etagOf(body))
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function formatCrc32(body: Buffer): string {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(crc32(body))
  return bytes.toString('base64')
}
