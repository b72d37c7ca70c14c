/** A fixed-size buffer that fills from a stream, however the stream is split: usually the header of a frame. */
export class FixedBytes {
  readonly bytes: Buffer
  #filled = 0

  constructor(size: number) {
    this.bytes = Buffer.allocUnsafe(size)
  }

  get isFull(): boolean {
    return this.#filled === this.bytes.length
  }

  /** Takes the missing bytes from `source`, starting at `from`, and returns where the rest begins. */
  fill(source: Uint8Array, from: number): number {
    const part = source.subarray(from, from + this.bytes.length - this.#filled)
    this.bytes.set(part, this.#filled)
    this.#filled += part.length
    return from + part.length
  }

  /** Starts over with an empty buffer. */
  clear(): void {
    this.#filled = 0
  }
}
