import type { ArchiveWindow, TarQuestion } from './formats/tar-members.js'

/** Reads a range of a shard, wherever it is; the caller owns the bytes. */
export type ReadRange = (offset: number, length: number) => Promise<Uint8Array>

/** Bytes to read at once for a header: a pax header and the one it belongs to, or headers of small members. */
export const WINDOW_BYTES = 2048

const EMPTY = new Uint8Array(0)

/** The most recently read part of a shard. */
export class RangeWindow implements ArchiveWindow {
  readBytes = 0
  start = 0
  bytes: Buffer = Buffer.alloc(0)
  readonly #sizeBytes: number
  readonly #read: ReadRange
  readonly #leastBytes: number

  /** `leastBytes`: minimum bytes of a read, default 2048. */
  constructor(sizeBytes: number, read: ReadRange, leastBytes = WINDOW_BYTES) {
    this.#sizeBytes = sizeBytes
    this.#read = read
    this.#leastBytes = leastBytes
  }

  async cover({ at, length }: TarQuestion): Promise<void> {
    const end = Math.min(at + length, this.#sizeBytes)
    if (at >= this.start && end <= this.start + this.bytes.length) return
    const wanted = Math.min(Math.max(length, this.#leastBytes), this.#sizeBytes - at)
    const { buffer, byteOffset, length: found } = wanted > 0 ? await this.#read(at, wanted) : EMPTY
    this.bytes = Buffer.from(buffer, byteOffset, found)
    this.start = at
    this.readBytes += Math.max(0, wanted)
  }
}
