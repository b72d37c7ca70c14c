import { DscError } from '../../failure/dsc-error.js'
import { formatFrame, formatFrameStart, readFrames, type Wire } from '../../frames/frame.js'
import type { LengthPrefixedReader } from '../../frames/length-prefixed.js'

/** The frames between a feed and its clients. Clients of another version are refused. */
export const SESSION_WIRE: Wire = { mark: 'DSCS', version: 9 }

/** Values of `type` in the head of a frame; the other fields depend on the message. */
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
  /** {message}: a sentence for people, sent to one client of the feed before its next message. */
  note: 14,
  /**
   * {rank, gpus, elapsedMs, feedMs, transformMs, startMs, loaderMs, firstStep}: how a trainer spent its time since it
   * told last. The payload may have its steps from the one with that number on: u32 microseconds that it took, u32 of
   * them that it waited for its batch.
   */
  waits: 15,
  /** {rank, madeMs, waitedMs}: how long a worker of the trainer's took to make batches, waits for the feed included. */
  made: 16,
} as const

/** One message. */
export interface SessionFrame {
  readonly type: number
  readonly fields: Readonly<Record<string, unknown>>
  readonly payload: Buffer
}

/** Calls `onFrame` with each frame in the pushed bytes. Pushing anything else throws FEED_PROTOCOL. */
export function readSessionFrames(
  peer: 'a client of the feed' | 'the feed',
  onFrame: (frame: SessionFrame) => void,
): Pick<LengthPrefixedReader<unknown>, 'push'> {
  return readFrames({
    wire: SESSION_WIRE,
    parse: parseHead,
    refuse: (problem) =>
      new DscError('FEED_PROTOCOL', `${peer} ${problem}`, {
        hint: 'install the Python package that belongs to this dsc: pip install ./src/python',
      }),
    onFrame: ({ type, ...fields }, payload) => onFrame({ type, fields, payload }),
  })
}

/** Formats one message as bytes on the wire. */
export function formatSessionFrame(type: number, fields: object = {}, payload?: Uint8Array): Buffer {
  return formatFrame(SESSION_WIRE, { type, ...fields }, payload)
}

function parseHead(raw: unknown): { readonly type: number; readonly [field: string]: unknown } {
  const head = raw as Readonly<Record<string, unknown>> | null
  if (typeof head?.type !== 'number') throw new TypeError('it has no type')
  return { ...head, type: head.type }
}

/** Location of a batch's samples: in the arena or, if WELCOME names mapped files, in the files of the table. */
interface BatchMessage {
  readonly seq: number
  readonly epoch: number
  readonly step: number
  readonly ids: readonly number[]
  readonly offsets: readonly number[]
  readonly lengths: readonly number[]
  /** 1 if a sample pads the last batch. */
  readonly flags: readonly number[]
  /** Samples that the batch lacks because no source could deliver them. */
  readonly lost: readonly number[]
}

/** The payload: u32 seq, epoch, step, count; then the columns u64 offsets, u32 lengths, u32 ids, u8 flags; then u32 lost. */
export function formatBatch(batch: BatchMessage): Buffer {
  const count = batch.ids.length
  const payloadBytes = 16 + count * 17 + 4 * batch.lost.length
  const start = batchStartOf(payloadBytes)
  const frame = Buffer.allocUnsafe(start.length + payloadBytes)
  frame.set(start)
  let at = start.length
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

/** The beginning of the newest batch's frame: most batches are as long as the one before. */
let batchStart: { readonly payloadBytes: number; readonly bytes: Buffer } | undefined

function batchStartOf(payloadBytes: number): Buffer {
  if (batchStart?.payloadBytes !== payloadBytes)
    batchStart = {
      payloadBytes,
      bytes: formatFrameStart(SESSION_WIRE, { type: MESSAGE.batch }, payloadBytes),
    }
  return batchStart.bytes
}

/** The inverse of `formatBatch`, for the payload alone. */
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
