import { DscError } from '../../failure/dsc-error.js'
import { formatFrame, formatFrameStart, readFrames, type Wire } from '../../frames/frame.js'
import type { LengthPrefixedReader } from '../../frames/length-prefixed.js'

/** The frames between a feed and a storage node. Another version is refused by name. */
const STORAGE_WIRE: Wire = { mark: 'DSCB', version: 3 }

/** What the head of a frame has as its `type`; the fields beside it and `request` are of that message. */
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
  /** {afterMs}: when to ask again; too many bytes are waiting to be sent. */
  busy: 10,
  error: 11,
  ping: 12,
  pong: 13,
  /** The server ends; requests that it has not answered are to be made elsewhere. */
  goAway: 14,
} as const

/** Bytes before the items of a frame: its start and its head, with spaces behind whatever the numbers in it. */
export const ITEMS_AT = 64

/** u64 id, u8 status (0 ok, 1 missing, 2 corrupt, 3 not sent), u32 length, u32 CRC-32 (as in the table of samples); then the bytes. */
export const ITEM_BYTES = 17

/** What a storage node says of each sample that was asked for. The numbers are on the wire. */
export const ITEM_STATUS = { ok: 0, missing: 1, corrupt: 2, notSent: 3 } as const

/** A server sends items in frames of about this many bytes, so that the missed sample leaves first. */
export const ITEMS_FRAME_BYTES = 512 * 1024

/** What every head has. */
export interface StorageHead {
  readonly type: number
  /** 0 where the frame belongs to none. */
  readonly request: number
  readonly [field: string]: unknown
}

/** What takes the frames of a connection. */
interface StorageHandlers {
  /** Some bytes of an ITEMS frame, in order. */
  onItems(request: number, bytes: Buffer): void
  /** Any other frame, whole. */
  onControl(head: StorageHead, payload: Buffer): void
  /** Longer payloads are refused, unless they are items. Default: any length. */
  readonly maxControlBytes?: number
}

/**
 * Reads frames as their bytes are pushed; items pass through without being collected. Pushing throws FEED_PROTOCOL for
 * anything else; `peer` names the other end in it.
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

/** A whole frame; `request` is 0 where it belongs to none. */
export function formatStorageFrame(head: StorageHead, payload?: Uint8Array): Buffer {
  return formatFrame(STORAGE_WIRE, head, payload)
}

/** Writes what comes before `itemsBytes` of items to the first `ITEMS_AT` bytes of `target`. */
export function writeItemsStart(target: Buffer, request: number, itemsBytes: number): void {
  const head = { type: STORAGE_MESSAGE.items, request }
  target.set(formatFrameStart(STORAGE_WIRE, head, itemsBytes, ITEMS_AT))
}

/** Asks for samples, the missed one first: u32 each. The answer has `maxBytes` at most. */
export function formatGetBatch(request: number, samples: Uint32Array, maxBytes: number): Buffer {
  const payload = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength)
  return formatStorageFrame({ type: STORAGE_MESSAGE.getBatch, request, maxBytes }, payload)
}

/** Reads which samples are asked for, and how many bytes the answer may have. */
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
