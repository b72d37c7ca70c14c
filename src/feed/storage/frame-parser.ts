import { DscError } from '../../failure/dsc-error.js'
import {
  parseStorageHeader,
  STORAGE_HEADER_BYTES,
  STORAGE_MESSAGE,
  type StorageHeader,
} from './storage-wire.js'

interface FrameHandlers {
  /** Some bytes of an ITEMS frame, in order. */
  onItems(request: number, bytes: Buffer): void
  /** Any other frame, whole. */
  onControl(type: number, request: number, payload: Buffer): void
  /** Longer frames are refused, unless they are ITEMS. Default: any length. */
  readonly maxControlBytes?: number
}

/** Takes DSCB frames out of a stream of bytes, however it is cut. Items pass through without being collected. */
export class FrameParser {
  readonly #peer: string
  readonly #handlers: FrameHandlers
  readonly #headerBytes = Buffer.alloc(STORAGE_HEADER_BYTES)
  #headerFill = 0
  #header: StorageHeader | undefined
  #control: Buffer | undefined
  #bodyDone = 0

  /** `peer` names the other end in errors. */
  constructor(peer: string, handlers: FrameHandlers) {
    this.#peer = peer
    this.#handlers = handlers
  }

  parse(bytes: Buffer): void {
    let at = 0
    do {
      if (!this.#header) at += this.#takeHeader(bytes.subarray(at))
      if (this.#header) at += this.#takeBody(this.#header, bytes.subarray(at))
    } while (at < bytes.length)
  }

  /** Returns how many bytes belong to the header. */
  #takeHeader(bytes: Buffer): number {
    const count = Math.min(STORAGE_HEADER_BYTES - this.#headerFill, bytes.length)
    bytes.copy(this.#headerBytes, this.#headerFill, 0, count)
    this.#headerFill += count
    if (this.#headerFill < STORAGE_HEADER_BYTES) return count
    this.#headerFill = 0
    const header = parseStorageHeader(this.#headerBytes, this.#peer)
    const isControl = header.type !== STORAGE_MESSAGE.items
    if (isControl && header.length > (this.#handlers.maxControlBytes ?? Number.POSITIVE_INFINITY))
      throw new DscError('FEED_PROTOCOL', `${this.#peer} sent a frame of ${header.length} bytes`)
    this.#header = header
    this.#bodyDone = 0
    this.#control = isControl ? Buffer.allocUnsafe(header.length) : undefined
    return count
  }

  /** Returns how many bytes belong to the frame. */
  #takeBody({ type, request, length }: StorageHeader, bytes: Buffer): number {
    const count = Math.min(length - this.#bodyDone, bytes.length)
    const control = this.#control
    if (control) bytes.copy(control, this.#bodyDone, 0, count)
    else this.#handlers.onItems(request, bytes.subarray(0, count))
    this.#bodyDone += count
    if (this.#bodyDone === length) {
      this.#header = undefined
      if (control) this.#handlers.onControl(type, request, control)
    }
    return count
  }
}
