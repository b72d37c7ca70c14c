import { DscError } from '../../failure/dsc-error.js'
import { formatFrame, formatFrameStart, readFrames, type Wire } from '../../frames/frame.js'
import type { LengthPrefixedReader } from '../../frames/length-prefixed.js'

/** The frames between a feed and a storage node. Other versions are refused by name. */
const STORAGE_WIRE: Wire = { mark: 'DSCB', version: 3 }

/** Values of `type` in the head of a frame; the fields beside it and `request` depend on the message. */
export const STORAGE_MESSAGE = {
  challenge: 1,
  hello: 2,
  welcome: 3,
  getManifest: 4,
  manifest: 5,
  getBatch: 6,
  /** Whole items, some of the requested ones. */
  items: 7,
  end: 8,
  /** The client no longer wants the request: the rest is neither read nor sent. */
  cancel: 9,
  /** {afterMs}: when to retry; too many bytes are waiting to be sent. */
  busy: 10,
  error: 11,
  ping: 12,
  pong: 13,
  /** The server is ending; send unanswered requests elsewhere. */
  goAway: 14,
} as const

/** Bytes before the items of a frame: its start and its head, padded with spaces to a fixed length. */
export const ITEMS_AT = 64

/** u64 id, u8 status (0 ok, 1 missing, 2 corrupt, 3 not sent), u32 length, u32 CRC-32 (as in the table of samples); then the bytes. */
export const ITEM_BYTES = 17

/** Status of each requested sample. The numbers are on the wire. */
export const ITEM_STATUS = { ok: 0, missing: 1, corrupt: 2, notSent: 3 } as const

/** Approximate size of the frames that a server sends items in, in bytes, so that the missed sample leaves first. */
export const ITEMS_FRAME_BYTES = 512 * 1024

/** Fields of every head. */
export interface StorageHead {
  readonly type: number
  /** 0 if the frame belongs to no request. */
  readonly request: number
  readonly [field: string]: unknown
}

/** Handlers for the frames of a connection. */
interface StorageHandlers {
  /** Takes the next bytes of an ITEMS frame. */
  onItems(request: number, bytes: Buffer): void
  /** Takes any other frame, complete. */
  onControl(head: StorageHead, payload: Buffer): void
  /** Maximum length of payloads that are not items. Default: any length. */
  readonly maxControlBytes?: number
}

/**
 * Reads frames as their bytes are pushed; items pass through without being collected. Pushing anything else throws
 * FEED_PROTOCOL, which calls the other end `peer`.
 */
export function readStorageFrames(
  peer: string,
  handlers: StorageHandlers,
): LengthPrefixedReader<StorageHead> {
  const { onItems, onControl, maxControlBytes = Number.POSITIVE_INFINITY } = handlers
  return readFrames({
    wire: STORAGE_WIRE,
    parse: parseHead,
    refuse: (problem) =>
      new DscError('FEED_PROTOCOL', `${peer} ${problem}`, {
        hint: 'is it a dsc storage node? Install the same version of dsc on all nodes',
      }),
    maxPayloadBytes: maxControlBytes,
    onFrame: onControl,
    onBegin: ({ type, request }) =>
      type === STORAGE_MESSAGE.items
        ? { take: (piece) => onItems(request, piece), end: () => {} }
        : undefined,
  })
}

/** Formats a complete frame; `request` is 0 if it belongs to no request. */
export function formatStorageFrame(head: StorageHead, payload?: Uint8Array): Buffer {
  return formatFrame(STORAGE_WIRE, head, payload)
}

/** Writes the part before `itemsBytes` of items to the first `ITEMS_AT` bytes of `target`. */
export function writeItemsStart(target: Buffer, request: number, itemsBytes: number): void {
  const head = { type: STORAGE_MESSAGE.items, request }
  target.set(formatFrameStart(STORAGE_WIRE, head, itemsBytes, ITEMS_AT))
}

/** Formats a request for samples, the missed one first: u32 each. The answer has `maxBytes` at most. */
export function formatGetBatch(request: number, samples: Uint32Array, maxBytes: number): Buffer {
  const payload = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength)
  return formatStorageFrame({ type: STORAGE_MESSAGE.getBatch, request, maxBytes }, payload)
}

/** Parses the requested samples and the maximum bytes of the answer. */
export function parseGetBatch(
  { maxBytes }: StorageHead,
  payload: Buffer,
): { readonly samples: Uint32Array; readonly maxBytes: number } {
  if (payload.length % 4 !== 0 || !isCount(maxBytes))
    throw new DscError('FEED_PROTOCOL', 'a GETBATCH of the wrong form')
  const samples = Uint32Array.from({ length: payload.length / 4 }, (_, i) => payload.readUInt32LE(4 * i))
  return { samples, maxBytes }
}

function parseHead(raw: unknown): StorageHead {
  const head = raw as Readonly<Record<string, unknown>> | null
  if (!isCount(head?.type) || !isCount(head.request)) throw new TypeError('it has no type or no request')
  return head as StorageHead
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
