import type { IncomingMessage } from 'node:http'
import { DscError } from '../failure/dsc-error.js'

/** The parts of a request that are read: its headers and its bytes. */
type Sent = Pick<IncomingMessage, 'headers'> & AsyncIterable<Buffer>

/**
 * Reads the body of a request, at most `maxBytes`. Rejects with the error that `refuse` makes of a problem (default:
 * USAGE); if the request declares its length, before reading a byte.
 */
export async function readBody(
  request: Sent,
  maxBytes: number,
  refuse: (problem: string) => Error = (problem) => new DscError('USAGE', problem),
): Promise<Buffer> {
  const tooLong = () => refuse(`expected a body of at most ${maxBytes} bytes`)
  const declared = request.headers['content-length']
  if (declared !== undefined && !(Number(declared) <= maxBytes)) throw tooLong()
  if (declared !== undefined) return readDeclared(request, Number(declared), refuse)
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes > maxBytes) throw tooLong()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Avoids a second copy of a body that may be gigabytes. */
async function readDeclared(
  request: AsyncIterable<Buffer>,
  declared: number,
  refuse: (problem: string) => Error,
): Promise<Buffer> {
  const body = Buffer.allocUnsafe(declared)
  let bytes = 0
  for await (const chunk of request) {
    chunk.copy(body, bytes)
    bytes += chunk.length
  }
  if (bytes !== declared) throw refuse(`${bytes} of ${declared} bytes arrived`)
  return body
}
