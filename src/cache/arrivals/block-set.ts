/** Ranges are fetched and remembered in blocks of so many bytes: little more than what tar puts between two members. */
const BLOCK_BYTES = 4096

/** The blocks of an object, bytes: no block is in two parts, and of a source that ignores ranges there is one. */
export function planBlockBytes(object: {
  readonly sizeBytes: number
  readonly partBytes: number
  readonly ignoresRanges: boolean
}): number {
  const { sizeBytes, partBytes } = object
  if (object.ignoresRanges) return sizeBytes
  return partBytes % BLOCK_BYTES === 0 || partBytes >= sizeBytes ? BLOCK_BYTES : partBytes
}

/** Some bytes of an object. */
export interface ByteRange {
  readonly offset: number
  readonly length: number
}

/** Blocks of one object, a bit for each. */
export class BlockSet {
  readonly #sizeBytes: number
  readonly #blockBytes: number
  readonly #bits: Uint8Array

  /** `bits`: as `bits` of another set of an object of this size and these blocks. */
  constructor(sizeBytes: number, blockBytes: number, bits?: Uint8Array) {
    this.#sizeBytes = sizeBytes
    this.#blockBytes = blockBytes
    const length = Math.ceil(Math.ceil(sizeBytes / blockBytes) / 8)
    this.#bits = bits?.length === length ? Uint8Array.from(bits) : new Uint8Array(length)
  }

  get bits(): Uint8Array {
    return this.#bits
  }

  /** Adds all blocks that the range touches. */
  add(range: ByteRange): void {
    const { first, end } = this.#blocksOf(range)
    for (let block = first; block < end; block++) this.#bits[block >> 3]! |= 1 << (block & 7)
  }

  /** Takes everything out. */
  clear(): void {
    this.#bits.fill(0)
  }

  /** Whether all bytes of the range are in. */
  has(range: ByteRange): boolean {
    return this.missing(range).next().done === true
  }

  /** Bytes of the range that are in. */
  countIn(range: ByteRange): number {
    let missing = 0
    for (const { offset, length } of this.missing(range))
      missing += Math.min(offset + length, range.offset + range.length) - Math.max(offset, range.offset)
    return Math.max(0, Math.min(range.length, this.#sizeBytes - range.offset)) - missing
  }

  /** The runs of whole blocks that the range touches and that are not in, in order. */
  *missing(range: ByteRange): Generator<ByteRange, undefined> {
    const { first, end } = this.#blocksOf(range)
    for (let block = first; block < end; block++) {
      if (this.#hasBlock(block)) continue
      const start = block
      while (block < end && !this.#hasBlock(block)) block++
      const offset = start * this.#blockBytes
      yield { offset, length: Math.min(block * this.#blockBytes, this.#sizeBytes) - offset }
    }
  }

  #hasBlock(block: number): boolean {
    return (this.#bits[block >> 3]! & (1 << (block & 7))) !== 0
  }

  #blocksOf({ offset, length }: ByteRange): { readonly first: number; readonly end: number } {
    const end = Math.min(offset + length, this.#sizeBytes)
    if (length <= 0 || end <= offset) return { first: 0, end: 0 }
    return { first: Math.floor(offset / this.#blockBytes), end: Math.ceil(end / this.#blockBytes) }
  }
}
