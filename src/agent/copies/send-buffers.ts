const LARGE_BYTES = 1024 * 1024
/** What a small buffer holds, bytes. */
export const SMALL_BYTES = 64 * 1024
/** Large buffers that may be used at once: thousands of clients that take nothing must not fill the memory. */
const MAX_LARGE = 64
/** Buffers of each size that are kept for the next file. */
const MAX_KEPT = 16

/** Memory through which files are sent: made once and used again, because making it costs as much as sending 10 KiB. */
export class SendBuffers {
  readonly #large: Buffer[] = []
  readonly #small: Buffer[] = []
  #largeUsed = 0

  /** Lends a small buffer, until `takeBack`; one that is not given back is left to be collected. */
  lendSmall(): Buffer {
    return this.#small.pop() ?? Buffer.allocUnsafeSlow(SMALL_BYTES)
  }

  /** Takes back what `lendSmall` lent, once nothing is sent from it any more. */
  takeBack(buffer: Buffer): void {
    if (this.#small.length < MAX_KEPT) this.#small.push(buffer)
  }

  /** Lends memory for sending so many bytes, perhaps in pieces, to `send`. */
  async use(bytes: number, send: (buffer: Buffer) => Promise<void>): Promise<void> {
    const isLarge = bytes > SMALL_BYTES && this.#largeUsed < MAX_LARGE
    const kept = isLarge ? this.#large : this.#small
    const buffer = kept.pop() ?? Buffer.allocUnsafeSlow(isLarge ? LARGE_BYTES : SMALL_BYTES)
    if (isLarge) this.#largeUsed += 1
    try {
      await send(buffer)
      // One that failed may still be read by a connection that is being closed: it is left to be collected.
      if (kept.length < MAX_KEPT) kept.push(buffer)
    } finally {
      if (isLarge) this.#largeUsed -= 1
    }
  }
}
