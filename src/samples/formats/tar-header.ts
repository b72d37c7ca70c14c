/** Size of an archive's blocks, in bytes. */
export const BLOCK = 512

/**
 * Offset of the first block of `bytes` that may be a header, in bytes; undefined without one. A match may also lie
 * inside a member that is itself an archive.
 */
export function findLikelyHeader(bytes: Buffer): number | undefined {
  const sums = new ByteSums()
  for (let at = 0; at + BLOCK <= bytes.length; at += BLOCK) {
    if (bytes.toString('latin1', at + 257, at + 262) !== 'ustar') continue
    if (hasItsSum(sums, sums.of(bytes, at, BLOCK), bytes, at)) return at
  }
  return undefined
}

/** Whether the header at `at`, whose bytes add up to `sum`, contains that sum, counting its own field as blanks. */
export function hasItsSum(sums: ByteSums, sum: number, bytes: Buffer, at: number): boolean {
  return readNumber(bytes, at + 148, 8) === sum - sums.of(bytes, at + 148, 8) + 8 * 32
}

/** Sums of bytes, four at a time if aligned: every header of an archive is summed. */
export class ByteSums {
  #bytes: Buffer | undefined
  #words: Uint32Array = new Uint32Array()

  /** Sums up to a whole header of one view; `start` and `length` are multiples of 4. */
  of(bytes: Buffer, start: number, length: number): number {
    if ((bytes.byteOffset | start) & 3) return sumBytes(bytes, start, start + length)
    if (bytes !== this.#bytes) {
      this.#bytes = bytes
      this.#words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2)
    }
    const words = this.#words
    let pairs = 0 // two sums of 16 bits, each of at most 256 bytes
    for (let i = start >>> 2; i < (start + length) >>> 2; i++) {
      const word = words[i]!
      pairs = (pairs + (word & 0x00ff00ff) + ((word >>> 8) & 0x00ff00ff)) | 0
    }
    return (pairs & 0xffff) + (pairs >>> 16)
  }
}

function sumBytes(bytes: Uint8Array, start: number, end: number): number {
  let sum = 0
  for (let i = start; i < end; i++) sum += bytes[i]!
  return sum
}

/** Reads octal text, or base-256 if the top bit is set; NaN for anything else. */
export function readNumber(bytes: Buffer, at: number, length: number): number {
  const first = bytes[at]!
  if (first & 0x80) {
    let value = first & 0x7f
    for (let i = at + 1; i < at + length; i++) value = value * 256 + bytes[i]!
    return value
  }
  let value = 0
  let isBegun = false
  for (let i = at; i < at + length; i++) {
    const byte = bytes[i]!
    if (byte >= 0x30 && byte <= 0x37) value = value * 8 + byte - 0x30
    else if (byte !== 0 && byte !== 0x20) return Number.NaN
    else if (isBegun) return value
    isBegun = byte !== 0x20 && byte !== 0
  }
  return value
}
