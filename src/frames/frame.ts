import { crc32 } from 'node:zlib'
import {
  collectPayload,
  LengthPrefixedReader,
  type MessageShape,
  type PayloadSink,
} from './length-prefixed.js'

// The messages of feeds, storage nodes, gathered objects and central nodes: a head of JSON, then a payload of bytes.
//
//   4 bytes mark of the wire · u32 length of the head · u48 length of the payload · u16 version of the wire ·
//   u32 CRC-32 of these and of the head · head · payload
//
// All numbers are little endian. Spaces end the head, so that the payload begins at a multiple of 8. What proves the
// payload is the wire's own: some carry a CRC-32 of it in the head. src/python/dsc/frames.py has the other side.

/** Bytes before the head. */
const START_BYTES = 20
const PAYLOAD_AT = 8
const VERSION_AT = 14
const CRC_AT = 16
/** Maximum length of a head, in bytes. */
const MAX_HEAD_BYTES = 1024 * 1024
const ALIGNMENT = 8
const NO_PAYLOAD = new Uint8Array()

/** A wire that carries frames. Raise `version` for a change that the other end cannot read. */
export interface Wire {
  /** Four letters at the beginning of each frame. */
  readonly mark: string
  readonly version: number
}

/** How to read the frames of one connection. */
interface Reading<Head> {
  readonly wire: Wire
  /** Makes a head from its JSON; throws if it is invalid. */
  readonly parse: (raw: unknown) => Head
  /** Makes an error from a problem; completes a sentence about the other end: 'speaks DSCB 1, this is DSCB 2'. */
  readonly refuse: (problem: string) => Error
}

interface FrameHandlers<Head> extends Reading<Head> {
  /** Maximum length of a collected payload, in bytes. Default: 64 MiB. */
  readonly maxPayloadBytes?: number
  /** Takes a complete frame. */
  readonly onFrame: (head: Head, payload: Buffer) => void
  /** Returns the sink for the payload of a frame that has begun; undefined: it is collected for `onFrame`. */
  readonly onBegin?: (head: Head, payloadBytes: number) => PayloadSink | undefined
}

/** Formats the beginning of a frame; the payload follows. `minBytes` pads it to a minimum length, to reserve space. */
export function formatFrameStart(wire: Wire, head: object, payloadBytes: number, minBytes = 0): Buffer {
  const text = Buffer.from(JSON.stringify(head))
  const bytes = Math.max(minBytes, START_BYTES + text.length)
  const start = Buffer.alloc(Math.ceil(bytes / ALIGNMENT) * ALIGNMENT, ' ')
  start.write(wire.mark, 0, 'latin1')
  start.writeUInt32LE(start.length - START_BYTES, 4)
  start.writeUIntLE(payloadBytes, PAYLOAD_AT, 6)
  start.writeUInt16LE(wire.version, VERSION_AT)
  start.set(text, START_BYTES)
  start.writeUInt32LE(sumOf(start, start.subarray(START_BYTES)), CRC_AT)
  return start
}

/** A whole frame. */
export function formatFrame(wire: Wire, head: object, payload: Uint8Array = NO_PAYLOAD): Buffer {
  return Buffer.concat([formatFrameStart(wire, head, payload.length), payload])
}

/** Parses the frames of a stream from its bytes as they are pushed. */
export function readFrames<Head>(handlers: FrameHandlers<Head>): LengthPrefixedReader<Head> {
  const { refuse, maxPayloadBytes = 64 * 1024 * 1024, onFrame, onBegin } = handlers
  return new LengthPrefixedReader(shapeOf(handlers), (head, payloadBytes) => {
    const sink = onBegin?.(head, payloadBytes)
    if (sink) return sink
    if (payloadBytes > maxPayloadBytes) throw refuse(`sent a frame of ${payloadBytes} bytes`)
    return collectPayload(payloadBytes, (payload) => onFrame(head, payload))
  })
}

/** Parses the one frame in `bytes`; the payload shares their memory. */
export function parseFrame<Head>(bytes: Buffer, reading: Reading<Head>): { head: Head; payload: Buffer } {
  const { startBytes, headBytesOf, parse } = shapeOf(reading)
  if (bytes.length < startBytes) throw reading.refuse(`sent ${bytes.length} bytes, too few for a frame`)
  const payloadAt = startBytes + headBytesOf(bytes)
  const { head, payloadBytes } = parse(bytes, bytes.subarray(startBytes, payloadAt))
  const payload = bytes.subarray(payloadAt)
  if (payload.length === payloadBytes) return { head, payload }
  throw reading.refuse(`sent ${payload.length} bytes of a payload, announced ${payloadBytes}`)
}

/** Reads the one frame of a stream: its head at once, its payload as it arrives. */
export async function openFrame<Head>(
  stream: AsyncIterable<Buffer>,
  reading: Reading<Head>,
): Promise<{ readonly head: Head; readonly payload: AsyncIterable<Buffer> }> {
  const source = stream[Symbol.asyncIterator]()
  let pieces: Buffer[] = []
  let head: { readonly value: Head } | undefined
  let isWhole = false
  const reader = readFrames({
    ...reading,
    onFrame: () => {},
    onBegin(value) {
      head = { value }
      return { take: (piece) => void pieces.push(piece), end: () => (isWhole = true) }
    },
  })
  const advance = async () => {
    const { done, value } = await source.next()
    if (done) throw reading.refuse('ended in the middle of a frame')
    reader.push(value)
  }
  while (head === undefined) await advance()
  async function* payload() {
    for (;;) {
      const arrived = pieces
      pieces = []
      yield* arrived
      if (isWhole && pieces.length === 0) return
      await advance()
    }
  }
  return { head: (head as { readonly value: Head }).value, payload: payload() }
}

function shapeOf<Head>({ wire, parse, refuse }: Reading<Head>): MessageShape<Head> {
  return {
    startBytes: START_BYTES,
    headBytesOf(start) {
      const { mark, version } = wire
      if (start.toString('latin1', 0, mark.length) !== mark) throw refuse(`does not speak ${mark}`)
      const found = start.readUInt16LE(VERSION_AT)
      if (found !== version) throw refuse(`speaks ${mark} ${found}, this is ${mark} ${version}`)
      const headBytes = start.readUInt32LE(4)
      if (headBytes > MAX_HEAD_BYTES) throw refuse(`sent a head of ${headBytes} bytes`)
      return headBytes
    },
    parse(start, headBytes) {
      const [found, expected] = [start.readUInt32LE(CRC_AT), sumOf(start, headBytes)]
      if (found !== expected)
        throw refuse(`sent a damaged head: its CRC-32 is ${found}, expected ${expected}`)
      return { head: parseHead(headBytes, parse, refuse), payloadBytes: start.readUIntLE(PAYLOAD_AT, 6) }
    },
  }
}

function parseHead<Head>(
  bytes: Buffer,
  parse: (raw: unknown) => Head,
  refuse: (problem: string) => Error,
): Head {
  try {
    return parse(JSON.parse(bytes.toString('utf8')))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError)
      throw refuse(`sent a malformed head: ${error.message}`)
    throw error
  }
}

/** CRC-32 of the bytes before the checksum, and of the head. */
function sumOf(start: Buffer, head: Buffer): number {
  return crc32(head, crc32(start.subarray(0, CRC_AT)))
}
