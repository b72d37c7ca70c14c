import { crc32 } from 'node:zlib'
import { DscError } from '../../failure/dsc-error.js'

/** Version of DSCB, the frames between a feed and a storage node. Another version is refused by name. */
const STORAGE_PROTOCOL = 2

/** Kinds of messages between a feed and a storage node. The numbers are on the wire. */
export const STORAGE_MESSAGE = {
  challenge: 1,
  hello: 2,
  welcome: 3,
  getManifest: 4,
  manifest: 5,
  getBatch: 6,
  /** Whole items, some of those asked for. */
  items: 7,
  end: 8,
  /** Whoever sent the request wants no more of it: what is not yet on its way is neither read nor sent. */
  cancel: 9,
  /** u32 ms after which to ask again: too many bytes are waiting to be sent. */
  busy: 10,
  error: 11,
  ping: 12,
  pong: 13,
  /** The server ends; requests that it has not answered are to be made elsewhere. */
  goAway: 14,
} as const

/** u32 'DSCB', u8 version, u8 type, u16 zero, u32 request, u32 length, u32 CRC-32 of these. */
export const STORAGE_HEADER_BYTES = 20

/** u64 id, u8 status (0 ok, 1 missing, 2 corrupt, 3 not sent), u32 length, u32 CRC-32 (as in the table of samples); then the bytes. */
export const ITEM_BYTES = 17

/** What a storage node says of each sample that was asked for. The numbers are on the wire. */
export const ITEM_STATUS = { ok: 0, missing: 1, corrupt: 2, notSent: 3 } as const

/** A server sends items in frames of about this many bytes, so that the missed sample leaves first. */
export const ITEMS_FRAME_BYTES = 512 * 1024

const MAGIC = 0x42435344 // 'DSCB'
const NO_PAYLOAD = new Uint8Array()

/** The beginning of every frame. */
export interface StorageHeader {
  readonly type: number
  readonly request: number
  readonly length: number
}

/** Writes a header to the start of `target`. */
export function writeStorageHeader(target: Buffer, header: StorageHeader): void {
  target.writeUInt32LE(MAGIC, 0)
  target[4] = STORAGE_PROTOCOL
  target[5] = header.type
  target.writeUInt16LE(0, 6)
  target.writeUInt32LE(header.request, 8)
  target.writeUInt32LE(header.length, 12)
  target.writeUInt32LE(crc32(target.subarray(0, STORAGE_HEADER_BYTES - 4)), STORAGE_HEADER_BYTES - 4)
}

/** Reads the header of a message; throws FEED_PROTOCOL on what `peer` should not have sent. */
export function parseStorageHeader(bytes: Buffer, peer: string): StorageHeader {
  if (bytes.readUInt32LE(0) !== MAGIC)
    throw new DscError('FEED_PROTOCOL', `${peer} does not speak DSCB`, { hint: 'is it a dsc storage node?' })
  if (bytes[4] !== STORAGE_PROTOCOL)
    throw new DscError('FEED_PROTOCOL', `${peer} speaks DSCB ${bytes[4]}, this is DSCB ${STORAGE_PROTOCOL}`, {
      hint: 'install the same version of dsc on all nodes',
    })
  const [found, expected] = [
    bytes.readUInt32LE(STORAGE_HEADER_BYTES - 4),
    crc32(bytes.subarray(0, STORAGE_HEADER_BYTES - 4)),
  ]
  if (found !== expected)
    throw new DscError(
      'FEED_PROTOCOL',
      `${peer} sent a damaged header: its CRC-32 is ${found}, expected ${expected}`,
      { hint: 'the same version of dsc on all nodes; if it has, the network damages bytes' },
    )
  return {
    type: bytes[5]!,
    request: bytes.readUInt32LE(8),
    length: bytes.readUInt32LE(12),
  }
}

/** A whole frame; `request` is 0 where it belongs to none. */
export function formatStorageFrame(type: number, request: number, payload: Uint8Array = NO_PAYLOAD): Buffer {
  const frame = Buffer.allocUnsafe(STORAGE_HEADER_BYTES + payload.length)
  writeStorageHeader(frame, { type, request, length: payload.length })
  frame.set(payload, STORAGE_HEADER_BYTES)
  return frame
}

/** A frame whose payload is one JSON object. */
export function formatStorageJson(type: number, value: unknown): Buffer {
  return formatStorageFrame(type, 0, Buffer.from(JSON.stringify(value)))
}

/** u32 count, u32 bytes at most, u64 id each; the first id is the missed sample. */
export function formatGetBatch(request: number, samples: Uint32Array, maxBytes: number): Buffer {
  const payload = Buffer.alloc(8 + 8 * samples.length)
  payload.writeUInt32LE(samples.length, 0)
  payload.writeUInt32LE(maxBytes, 4)
  for (let i = 0; i < samples.length; i++) payload.writeUInt32LE(samples[i]!, 8 + 8 * i)
  return formatStorageFrame(STORAGE_MESSAGE.getBatch, request, payload)
}

/** Reads which samples are asked for, and how many bytes the answer may have. */
export function parseGetBatch(payload: Buffer): { samples: Uint32Array; maxBytes: number } {
  const count = payload.length >= 8 ? payload.readUInt32LE(0) : -1
  if (payload.length !== 8 + 8 * count) throw new DscError('FEED_PROTOCOL', 'a GETBATCH of the wrong length')
  const samples = Uint32Array.from({ length: count }, (_, i) => payload.readUInt32LE(8 + 8 * i))
  return { samples, maxBytes: payload.readUInt32LE(4) }
}
