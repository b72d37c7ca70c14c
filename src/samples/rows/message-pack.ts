/** Minimum and maximum initial room of a writer, in bytes; it grows when needed. */
const LEAST_BYTES = 1 << 20
const MOST_BYTES = 1 << 28
/** Up to this length, copying byte by byte beats calling `set`. */
const SHORT_BYTES = 16

/**
 * Writes values one after the other as MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md), in memory
 * that grows. Parquet types that MessagePack lacks become extensions (`ROW_EXTENSIONS`).
 */
export class MessagePackWriter {
  #bytes: Buffer<ArrayBuffer>
  #at = 0

  /**
   * `expectedBytes`: about the output's size, to avoid growing, which copies. It may come from a file: any value is
   * safe.
   */
  constructor(expectedBytes = 0) {
    const isMore = expectedBytes > LEAST_BYTES // false for NaN
    this.#bytes = Buffer.allocUnsafeSlow(isMore ? Math.min(MOST_BYTES, expectedBytes) : LEAST_BYTES)
  }

  /** Bytes written since the last `clear`. */
  get length(): number {
    return this.#at
  }

  /** Returns the written bytes; valid until the next write. */
  written(start = 0): Buffer<ArrayBuffer> {
    return this.#bytes.subarray(start, this.#at)
  }

  clear(): void {
    this.#at = 0
  }

  /** Appends bytes that are already MessagePack. */
  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.#copy(bytes)
  }

  nil(): void {
    this.#reserve(1)
    this.#bytes[this.#at++] = 0xc0
  }

  boolean(value: boolean): void {
    this.#reserve(1)
    this.#bytes[this.#at++] = value ? 0xc3 : 0xc2
  }

  /** An integer of −2^53 to 2^53. */
  integer(value: number): void {
    if (value < -0x80000000 || value > 0xffffffff) {
      this.bigInteger(BigInt(value))
      return
    }
    this.#reserve(5)
    if (value >= -32 && value < 128) this.#bytes[this.#at++] = value & 0xff
    else if (value < 0) this.#at = this.#bytes.writeInt32BE(value, this.#tag(0xd2))
    else if (value < 256) this.#bytes[this.#tag(0xcc, 1)] = value
    else this.#at = this.#bytes.writeUInt32BE(value, this.#tag(0xce))
  }

  /** An integer of −2^63 to 2^64 − 1. */
  bigInteger(value: bigint): void {
    if (value >= -0x80000000n && value <= 0xffffffffn) {
      this.integer(Number(value))
      return
    }
    this.#reserve(9)
    if (value < 0n) this.#at = this.#bytes.writeBigInt64BE(value, this.#tag(0xd3))
    else this.#at = this.#bytes.writeBigUInt64BE(value, this.#tag(0xcf))
  }

  float32(value: number): void {
    this.#reserve(5)
    this.#at = this.#bytes.writeFloatBE(value, this.#tag(0xca))
  }

  float64(value: number): void {
    this.#reserve(9)
    this.#at = this.#bytes.writeDoubleBE(value, this.#tag(0xcb))
  }

  /** A string, from its UTF-8 bytes. */
  string(bytes: Uint8Array): void {
    const { length } = bytes
    this.#reserve(5 + length)
    if (length < 32) this.#bytes[this.#at++] = 0xa0 | length
    else this.#size(length, 0xd9)
    this.#copy(bytes)
  }

  binary(bytes: Uint8Array): void {
    this.#reserve(5 + bytes.length)
    this.#size(bytes.length, 0xc4)
    this.#copy(bytes)
  }

  /** Begins an array of `length` values. */
  array(length: number): void {
    this.#reserve(5)
    if (length < 16) this.#bytes[this.#at++] = 0x90 | length
    else this.#at = this.#bytes.writeUInt32BE(length, this.#tag(0xdd))
  }

  /** Begins a map of `length` keys and values. */
  map(length: number): void {
    this.#reserve(5)
    if (length < 16) this.#bytes[this.#at++] = 0x80 | length
    else this.#at = this.#bytes.writeUInt32BE(length, this.#tag(0xdf))
  }

  /** An extension of type 0 to 127. */
  extension(type: number, bytes: Uint8Array): void {
    this.#reserve(6 + bytes.length)
    this.#size(bytes.length, 0xc7)
    this.#bytes[this.#at++] = type
    this.#copy(bytes)
  }

  /** Writes the tag; returns the position behind it. */
  #tag(tag: number, follows = 0): number {
    this.#bytes[this.#at++] = tag
    this.#at += follows
    return this.#at - follows
  }

  /** Writes a length in 1, 2 or 4 bytes; `tag` is for 1 byte, and the next two tags for 2 and 4. */
  #size(length: number, tag: number): void {
    if (length < 0x100) this.#bytes[this.#tag(tag, 1)] = length
    else if (length < 0x10000) this.#at = this.#bytes.writeUInt16BE(length, this.#tag(tag + 1))
    else this.#at = this.#bytes.writeUInt32BE(length, this.#tag(tag + 2))
  }

  #copy(bytes: Uint8Array): void {
    const target = this.#bytes
    const { length } = bytes
    if (length > SHORT_BYTES) target.set(bytes, this.#at)
    else for (let i = 0; i < length; i++) target[this.#at + i] = bytes[i]!
    this.#at += length
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return
    const longer = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#at + bytes))
    this.#bytes.copy(longer, 0, 0, this.#at)
    this.#bytes = longer
  }
}
