import { DscError } from '../../failure/dsc-error.js'

/** Version of the messages between a feed and its clients. A client of another version is refused. */
export const SESSION_PROTOCOL = 7

/** Message types. A frame is u32 length of the rest, u8 type, payload; all numbers are little endian. */
export const MESSAGE = {
  hello: 1,
  welcome: 2,
  start: 3,
  started: 4,
  next: 5,
  batch: 6,
  release: 7,
  epochEnd: 8,
  error: 9,
  get: 10,
  ids: 11,
  status: 12,
  stop: 13,
  /** {message}: a sentence for people that comes before whatever comes next, to one client of the feed. */
  note: 14,
} as const

/** No control message is longer; a peer that says so speaks something else. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024

const NO_PAYLOAD = new Uint8Array()

/** One message, as its bytes lie on the wire. */
export interface SessionFrame {
  readonly type: number
  readonly payload: Buffer
}

/** Takes frames out of a stream of bytes, however it is cut. */
export class SessionFrameReader {
  #rest: Buffer = Buffer.alloc(0)

  /** The frames that are whole now. Throws FEED_PROTOCOL on what cannot be one. */
  read(chunk: Buffer): SessionFrame[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const frames: SessionFrame[] = []
    let at = 0
    while (bytes.length - at >= 5) {
      const length = bytes.readUInt32LE(at)
      if (length < 1 || length > MAX_FRAME_BYTES)
        throw new DscError('FEED_PROTOCOL', `a client of the feed sent a frame of ${length} bytes`)
      if (bytes.length - at < 4 + length) break
      frames.push({ type: bytes[at + 4]!, payload: bytes.subarray(at + 5, at + 4 + length) })
      at += 4 + length
    }
    this.#rest = bytes.subarray(at)
    return frames
  }
}

/** u32 length of the rest, u8 type, payload. */
export function formatFrame(type: number, payload: Uint8Array = NO_PAYLOAD): Buffer {
  const frame = Buffer.allocUnsafe(5 + payload.length)
  frame.writeUInt32LE(1 + payload.length, 0)
  frame[4] = type
  frame.set(payload, 5)
  return frame
}

/** A frame whose payload is one JSON object. */
export function formatJsonFrame(type: number, value: unknown): Buffer {
  return formatFrame(type, Buffer.from(JSON.stringify(value)))
}

/** Where the samples of a batch lie: in the arena, or, where WELCOME names mapped files, in those of the table. */
interface BatchMessage {
  readonly seq: number
  readonly epoch: number
  readonly step: number
  readonly ids: readonly number[]
  readonly offsets: readonly number[]
  readonly lengths: readonly number[]
  /** 1 where a sample pads the last batch. */
  readonly flags: readonly number[]
  /** Samples that no source could give and that the batch came without. */
  readonly lost: readonly number[]
}

/** u32 seq, epoch, step, count; then the columns u64 offsets, u32 lengths, u32 ids, u8 flags; then u32 lost. */
export function formatBatch(batch: BatchMessage): Buffer {
  const count = batch.ids.length
  const frame = Buffer.allocUnsafe(5 + 16 + count * 17 + 4 * batch.lost.length)
  frame.writeUInt32LE(frame.length - 4, 0)
  frame[4] = MESSAGE.batch
  let at = 5
  for (const value of [batch.seq, batch.epoch, batch.step, count]) at = frame.writeUInt32LE(value, at)
  for (const offset of batch.offsets) {
    at = frame.writeUInt32LE(offset >>> 0, at)
    at = frame.writeUInt32LE(Math.floor(offset / 4294967296), at)
  }
  for (const length of batch.lengths) at = frame.writeUInt32LE(length, at)
  for (const id of batch.ids) at = frame.writeUInt32LE(id, at)
  for (const flag of batch.flags) frame[at++] = flag
  for (const id of batch.lost) at = frame.writeUInt32LE(id, at)
  return frame
}

/** The inverse of `formatBatch`, of the payload alone. */
export function parseBatch(payload: Buffer): BatchMessage {
  const [seq, epoch, step, count] = [0, 4, 8, 12].map((at) => payload.readUInt32LE(at)) as [
    number,
    number,
    number,
    number,
  ]
  const column = (at: number, length: number) =>
    Array.from({ length }, (_, i) => payload.readUInt32LE(at + 4 * i))
  const flagsAt = 16 + 16 * count
  const lostAt = flagsAt + count
  return {
    seq,
    epoch,
    step,
    offsets: Array.from({ length: count }, (_, i) => Number(payload.readBigUInt64LE(16 + 8 * i))),
    lengths: column(16 + 8 * count, count),
    ids: column(16 + 12 * count, count),
    flags: [...payload.subarray(flagsAt, lostAt)],
    lost: column(lostAt, (payload.length - lostAt) / 4),
  }
}

/** Parses the payload of a JSON message; throws FEED_PROTOCOL on anything else. */
export function parseJsonPayload(payload: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(payload.toString())
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // said below, in the same words
  }
  throw new DscError('FEED_PROTOCOL', 'a client of the feed sent a message that is no JSON object')
}
