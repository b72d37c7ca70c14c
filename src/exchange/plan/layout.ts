/** Maximum bytes of one framed message. Smaller ones cost 2 to 3 times more per byte in Node (measured at 64 KiB). */
export const SEGMENT_BYTES = 256 * 1024

/** Values are processed eight at a time, so every chunk is a multiple of eight. */
const LANES = 8

/** Where the parts of a bucket begin. Every part can be scaled by itself: each begins at a multiple of eight values. */
interface Parts {
  readonly starts: readonly number[]
  /** Values from the first part to the end of the last, with the zeros between them. */
  readonly elements: number
}

/** Lays parts of these `sizes` out one behind the other. */
export function planParts(sizes: readonly number[]): Parts {
  let elements = 0
  const starts = sizes.map((size) => {
    const start = elements
    elements += Math.ceil(size / LANES) * LANES
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
export function planLayout(elements: number, ranks: number): Layout {
  const chunkElements = Math.ceil(elements / ranks / LANES) * LANES
  return { elements, chunkElements, paddedElements: chunkElements * ranks }
}

/** A part of a chunk sent in one frame. Offsets and counts in values, multiples of eight. */
export interface Segment {
  readonly offset: number
  readonly elements: number
}

/** Cuts a chunk of `chunkElements` values of `bytesPerElement` into segments of at most 256 KiB. */
export function planSegments(chunkElements: number, bytesPerElement: number): Segment[] {
  const most = SEGMENT_BYTES / bytesPerElement
  const segments: Segment[] = []
  for (let offset = 0; offset < chunkElements; offset += most) {
    segments.push({ offset, elements: Math.min(most, chunkElements - offset) })
  }
  return segments
}
