type Numbers = Uint8Array | Uint32Array | Float64Array

/** An array type of numbers. */
export interface NumberKind<Kind extends Numbers> {
  readonly BYTES_PER_ELEMENT: number
  new (buffer: SharedArrayBuffer, byteOffset: number, length: number): Kind
}

/**
 * Zeros that threads can share, in pages of their own: those that nobody has written to take no memory, and all go back
 * to the system with the last view of them. What comes from the C library's heap instead may stay there when it is given
 * up: 50 MiB were left so by the list of 3 million samples.
 */
export function allocatePages<Kind extends Numbers>(Numbers: NumberKind<Kind>, length: number): Kind {
  const bytes = length * Numbers.BYTES_PER_ELEMENT
  const pages = new SharedArrayBuffer(bytes, { maxByteLength: bytes }) // what could grow is mapped
  return new Numbers(pages, 0, length) // without a length it would follow the buffer's, which makes every access slower
}
