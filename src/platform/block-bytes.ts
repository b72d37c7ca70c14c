/**
 * Files are written in multiples of this, at multiples of this, where bytes arrive fast enough: Linux then keeps them
 * in large pieces of its page cache, which takes an eighth less processor time than writes that begin anywhere (0.25
 * instead of 0.285 s per GiB).
 */
export const BLOCK_BYTES = 64 * 1024
