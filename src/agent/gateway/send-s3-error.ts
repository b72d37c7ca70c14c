import type { IncomingMessage, ServerResponse } from 'node:http'
import { formatError } from './s3-documents.js'
import type { S3Error } from './s3-request.js'

/** Limits of what is read of a refused upload. */
const MAX_TAKEN_BYTES = 64 * 1024 * 1024
const MAX_TAKING_MS = 10_000

/** Refuses a request in S3's terms. */
export function sendS3Error(
  error: S3Error,
  exchange: {
    readonly request: IncomingMessage
    readonly response: ServerResponse
    readonly requestId: string
  },
): void {
  const { request, response, requestId } = exchange
  const resource = (request.url ?? '').split('?', 1)[0]!
  const body = request.method === 'HEAD' ? '' : formatError(error, resource, requestId)
  if (error.retryAfterSeconds !== undefined) response.setHeader('retry-after', error.retryAfterSeconds)
  const { ActualObjectSize: size } = error.details
  if (size !== undefined) response.setHeader('content-range', `bytes */${size}`)
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    if (request.headers.expect === undefined) takeBody(request)
    else response.setHeader('connection', 'close') // the client sends no body
  }
  response
    .writeHead(error.status, {
      'content-type': 'application/xml',
      'content-length': Buffer.byteLength(body),
    })
    .end(body)
}

/**
 * Reads the body that a client is sending. Many clients read the answer only after their body: closing the connection
 * earlier tells them of a broken pipe, after which they try again.
 */
function takeBody(request: IncomingMessage): void {
  let takenBytes = 0
  const stop = () => request.socket.destroy()
  const timer = setTimeout(stop, MAX_TAKING_MS)
  request.once('close', () => clearTimeout(timer))
  request.on('data', (chunk: Uint8Array) => {
    takenBytes += chunk.length
    if (takenBytes > MAX_TAKEN_BYTES) stop()
  })
}
