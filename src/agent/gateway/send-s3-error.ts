import type { IncomingMessage, ServerResponse } from 'node:http'
import { formatError } from './s3-documents.js'
import type { S3Error } from './s3-request.js'

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
  // The rest of the client's body stays unread.
  if (request.method !== 'GET' && request.method !== 'HEAD') response.setHeader('connection', 'close')
  response
    .writeHead(error.status, {
      'content-type': 'application/xml',
      'content-length': Buffer.byteLength(body),
    })
    .end(body)
}
