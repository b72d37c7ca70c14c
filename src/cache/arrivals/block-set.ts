/** Block size in which ranges are fetched and remembered, in bytes: little more than tar puts between two members. */
const BLOCK_BYTES = 4096

/**
 * Size of an object's blocks, in bytes. No block spans two parts; if the source ignores ranges, the object is one
 * block.
 */
export function planBlockBytes(object: {
  readonly sizeBytes: number
  readonly partBytes: number
  readonly ignoresRanges: boolean
}): number {
  const { sizeBytes, partBytes } = object
  if (object.ignoresRanges) return sizeBytes
  return partBytes % BLOCK_BYTES === 0 || partBytes >= sizeBytes ? BLOCK_BYTES : partBytes
}

/** A range of an object's bytes. */
export interface ByteRange {
  readonly offset: number
  readonly length: number
}

/** A set of blocks of one object, one bit each. */
export class BlockSet {
  readonly #sizeBytes: number
  readonly #blockBytes: number
  readonly #bits: Uint8Array
  /** All blocks before this one are known to be there. */
  #full = 0

  /** `bits`: the `bits` of another set for an object of the same size and block size. */
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

  /** Empties the set. */
  clear(): void {
    this.#bits.fill(0)
    this.#full = 0
  }

  /** Whether the set holds all bytes of the range. */
  has(range: ByteRange): boolean {
    const { first, end } = this.#blocksOf(range)
    return this.#findMissing(first, end) === end
  }

  /** Number of bytes of the range that the set holds. */
  countIn(range: ByteRange): number {
    let missing = 0
    for (const { offset, length } of this.missing(range))
      missing += Math.min(offset + length, range.offset + range.length) - Math.max(offset, range.offset)
    return Math.max(0, Math.min(range.length, this.#sizeBytes - range.offset)) - missing
  }

  /** The runs of whole blocks that the range touches and the set lacks, in order. */
  *missing(range: ByteRange): Generator<ByteRange, undefined> {
    const { first, end } = this.#blocksOf(range)
    for (let start = this.#findMissing(first, end); start < end; ) {
      const block = this.#findThere(start, end)
      const offset = start * this.#blockBytes
      yield { offset, length: Math.min(block * this.#blockBytes, this.#sizeBytes) - offset }
      start = this.#findMissing(block, end)
    }
  }

  /** The first block from `first` on that the set lacks, or `end`. A reader may ask for all of a terabyte, often. */
  #findMissing(first: number, end: number): number {
    let block = Math.max(first, this.#full)
    while (block < end && this.#hasBlock(block))
      block += (block & 7) === 0 && this.#bits[block >> 3] === 0xff ? 8 : 1
    if (first <= this.#full) this.#full = Math.max(this.#full, Math.min(block, end))
    return Math.min(block, end)
  }

  /** The first block from `first` on that the set holds, or `end`. */
  #findThere(first: number, end: number): number {
    let block = first
    while (block < end && !this.#hasBlock(block))
      block += (block & 7) === 0 && this.#bits[block >> 3] === 0 ? 8 : 1
    return Math.min(block, end)
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
