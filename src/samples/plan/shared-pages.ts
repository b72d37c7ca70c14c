type Numbers = Uint8Array | Uint32Array | Float64Array

/** An array type of numbers. */
export interface NumberKind<Kind extends Numbers> {
  readonly BYTES_PER_ELEMENT: number
  new (buffer: SharedArrayBuffer, byteOffset: number, length: number): Kind
}

/**
 * Allocates zeros that threads can share, in separate pages: unwritten pages take no memory, and all return to the
 * system with their last view. Memory from the C library's heap may stay there when freed: the list of 3 million
 * samples left 50 MiB that way.
 */
export function allocatePages<Kind extends Numbers>(Numbers: NumberKind<Kind>, length: number): Kind {
  const bytes = length * Numbers.BYTES_PER_ELEMENT
  const pages = new SharedArrayBuffer(bytes, { maxByteLength: bytes }) // growable memory is mapped
  return new Numbers(pages, 0, length) // without a length it would track the buffer's, which slows every access
}
