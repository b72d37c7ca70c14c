/** Values of an int8 block, which has a scale of its own beside them. */
export const BLOCK_VALUES = 256
export const BLOCK_BYTES = BLOCK_VALUES + 4

/** Bytes of `elements` values in blocks. */
export function planBlockBytes(elements: number): number {
  return Math.ceil(elements / BLOCK_VALUES) * BLOCK_BYTES
}
