const LARGE_BYTES = 1024 * 1024
/** Size of a small buffer, in bytes. */
export const SMALL_BYTES = 64 * 1024
/** Maximum number of large buffers in use at once: thousands of clients that read nothing must not fill the memory. */
const MAX_LARGE = 64
/** Maximum number of buffers of each size to keep for the next file. */
const MAX_KEPT = 16

/** Reusable memory for sending files: allocating it costs as much as sending 10 KiB. */
export class SendBuffers {
  readonly #large: Buffer[] = []
  readonly #small: Buffer[] = []
  #largeUsed = 0

  /** Lends a small buffer until `takeBack`; a buffer that never comes back is garbage-collected. */
  lendSmall(): Buffer {
    return this.#small.pop() ?? Buffer.allocUnsafeSlow(SMALL_BYTES)
  }

  /** Takes back a buffer from `lendSmall`, once nothing is sent from it any more. */
  takeBack(buffer: Buffer): void {
    if (this.#small.length < MAX_KEPT) this.#small.push(buffer)
  }

  /** Lends memory to `send` for this many bytes, possibly in pieces. */
  async use(bytes: number, send: (buffer: Buffer) => Promise<void>): Promise<void> {
    const isLarge = bytes > SMALL_BYTES && this.#largeUsed < MAX_LARGE
    const kept = isLarge ? this.#large : this.#small
    const buffer = kept.pop() ?? Buffer.allocUnsafeSlow(isLarge ? LARGE_BYTES : SMALL_BYTES)
    if (isLarge) this.#largeUsed += 1
    try {
      await send(buffer)
      // After a failure, a closing connection may still read the buffer: leave it to the garbage collector.
      if (kept.length < MAX_KEPT) kept.push(buffer)
    } finally {
      if (isLarge) this.#largeUsed -= 1
    }
  }
}
