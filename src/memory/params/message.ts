import { crc32 } from 'node:zlib'
import { DscError } from '../../failure/dsc-error.js'

/** Version of the messages between central node and workers. */
const WIRE_VERSION = 1

/** Bytes that go into a checksum at once. */
const PIECE_BYTES = 2 ** 30

/** Header of every request that names the worker's job. */
export const JOB_HEADER = 'x-dsc-job'

/**
 * One message: 4 bytes length of the header (little endian), the header as JSON, then values: float32, the halves of a
 * push whose header says `"dtype":"f16"`, with its buffers after them, or what a pull of halves says.
 */
export function encodeFrame(header: object, values: ArrayBufferView | undefined): Buffer[] {
  const payload = values ? Buffer.from(values.buffer, values.byteOffset, values.byteLength) : Buffer.alloc(0)
  const json = JSON.stringify({ ...header, v: WIRE_VERSION, crc: checksum(payload) })
  const size = Buffer.byteLength(json)
  // Spaces, so that values begin at a multiple of 8 and can be used where they are.
  const text = Buffer.from(json + ' '.repeat((12 - (size % 8)) % 8))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(text.length)
  return [length, text, payload]
}

/** Takes a message apart and checks its checksum; halves come as pairs in one float32 each. Values share the memory of `bytes` where they are aligned. */
export function decodeFrame(bytes: Buffer): { header: unknown; values: Float32Array } {
  const headerLength = bytes.length >= 4 ? bytes.readUInt32LE(0) : 0
  if (headerLength === 0 || headerLength > bytes.length - 4) throw damaged('no header')
  const payload = bytes.subarray(4 + headerLength)
  let header: unknown
  try {
    header = JSON.parse(bytes.subarray(4, 4 + headerLength).toString('utf8'))
  } catch {
    throw damaged('the header is not JSON')
  }
  const { v, crc } = header as { v?: unknown; crc?: unknown }
  if (v !== WIRE_VERSION) throw damaged(`version ${String(v)}, not ${WIRE_VERSION}`)
  const found = checksum(payload)
  if (crc !== found) throw damaged(`checksum ${found}, not ${String(crc)}`)
  if (payload.length % 4 !== 0) throw damaged(`${payload.length} bytes are no float32 values`)
  if (payload.byteOffset % 4 === 0)
    return { header, values: new Float32Array(payload.buffer, payload.byteOffset, payload.length / 4) }
  const values = new Float32Array(payload.length / 4)
  new Uint8Array(values.buffer).set(payload)
  return { header, values }
}

/** CRC-32 of any number of bytes; Node's own takes their number modulo 2^32. */
function checksum(bytes: Buffer): number {
  let crc = 0
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    crc = crc32(bytes.subarray(at, at + PIECE_BYTES), crc)
  return crc
}

function damaged(problem: string): DscError {
  return new DscError('PARAMS_REFUSED', `a damaged message: ${problem}`)
}
