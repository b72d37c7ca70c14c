import { BLOCK_VALUES } from '../../half/plan-blocks.js'
import { tensorBytes, type WireType } from './wire-type.js'

/** Maximum bytes of one framed message. Smaller ones cost 2 to 3 times more per byte in Node (measured at 64 KiB). */
export const SEGMENT_BYTES = 256 * 1024

/** Values are processed eight at a time, or in blocks: every chunk is a multiple of that. */
const LANES = 8
const unitOf = (wireType: WireType) => (wireType === 'int8' ? BLOCK_VALUES : LANES)

/** Where the parts of a bucket begin. Every part can be scaled by itself: each begins at a multiple of eight or 256. */
interface Parts {
  readonly starts: readonly number[]
  /** Values from the first part to the end of the last, with the zeros between them. */
  readonly elements: number
}

/** Lays parts of these `sizes` out one behind the other. */
export function planParts(sizes: readonly number[], wire: WireType): Parts {
  const unit = unitOf(wire)
  let elements = 0
  const starts = sizes.map((size) => {
    const start = elements
    elements += Math.ceil(size / unit) * unit
    return start
  })
  return { starts, elements }
}

/** How the values of a bucket are cut: equal chunks, one per rank, zero-padded at the end. */
interface Layout {
  readonly elements: number
  readonly chunkElements: number
  readonly paddedElements: number
}

/** Lays `elements` values out for `ranks` processes. */
export function planLayout(elements: number, ranks: number, wire: WireType): Layout {
  const unit = unitOf(wire)
  const chunkElements = Math.ceil(elements / ranks / unit) * unit
  return { elements, chunkElements, paddedElements: chunkElements * ranks }
}

/** A part of a chunk sent in one frame. Offsets and counts in values, multiples of eight; with int8, of 256. */
export interface Segment {
  readonly offset: number
  readonly elements: number
}

/** Cuts a chunk of `chunkElements` values into segments of at most 256 KiB. */
export function planSegments(chunkElements: number, wireType: WireType): Segment[] {
  const most = Math.floor(SEGMENT_BYTES / tensorBytes(wireType, BLOCK_VALUES)) * BLOCK_VALUES
  const segments: Segment[] = []
  for (let offset = 0; offset < chunkElements; offset += most) {
    segments.push({ offset, elements: Math.min(most, chunkElements - offset) })
  }
  return segments
}
