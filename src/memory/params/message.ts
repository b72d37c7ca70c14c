import { crc32 } from 'node:zlib'
import { DscError } from '../../failure/dsc-error.js'
import { formatFrameStart, parseFrame, type Wire } from '../../frames/frame.js'

/** The format of messages between central node and workers, and of checkpoints. */
export const PARAMETER_WIRE: Wire = { mark: 'DSCP', version: 2 }

/** Bytes that go into a checksum at once. */
const PIECE_BYTES = 2 ** 30

/** Header of every request, naming the worker's job. */
export const JOB_HEADER = 'x-dsc-job'

/** Common field of all heads: the CRC-32 of the values behind the head. */
export interface MessageHead {
  readonly crc: number
  readonly [field: string]: unknown
}

/** Settings for reading messages; `refuse` turns a problem into an error. */
export const readingOf = (refuse: (problem: string) => Error) => ({
  wire: PARAMETER_WIRE,
  parse: parseHead,
  refuse,
})

/**
 * Encodes a message: its head, then values. These are float32, the halves of a push whose head has `"dtype":"f16"`,
 * followed by its buffers, or the values that a pull of halves describes.
 */
export function encodeFrame(head: object, values: ArrayBufferView | undefined): Buffer[] {
  const payload = values ? Buffer.from(values.buffer, values.byteOffset, values.byteLength) : Buffer.alloc(0)
  return [formatFrameStart(PARAMETER_WIRE, { ...head, crc: checksum(payload) }, payload.length), payload]
}

/**
 * Splits a message and verifies its checksum; halves come as pairs in one float32 each. Values share the memory of
 * `bytes` if they are aligned.
 */
export function decodeFrame(bytes: Buffer): { header: unknown; values: Float32Array } {
  const { head, payload } = parseFrame(bytes, readingOf(damaged))
  const found = checksum(payload)
  if (head.crc !== found) throw damaged(`has the checksum ${found}, not ${head.crc}`)
  if (payload.length % 4 !== 0) throw damaged(`sent ${payload.length} bytes, which are no float32 values`)
  if (payload.byteOffset % 4 === 0)
    return { header: head, values: new Float32Array(payload.buffer, payload.byteOffset, payload.length / 4) }
  const values = new Float32Array(payload.length / 4)
  new Uint8Array(values.buffer).set(payload)
  return { header: head, values }
}

function parseHead(raw: unknown): MessageHead {
  if (typeof (raw as Partial<MessageHead> | null)?.crc === 'number') return raw as MessageHead
  throw new TypeError('it has no checksum')
}

/** CRC-32 of any number of bytes; Node's own takes their number modulo 2^32. */
function checksum(bytes: Buffer): number {
  let crc = 0
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    crc = crc32(bytes.subarray(at, at + PIECE_BYTES), crc)
  return crc
}

function damaged(problem: string): DscError {
  return new DscError('PARAMS_REFUSED', `a damaged message: it ${problem}`)
}
