/** A buffer of a fixed size that fills from a stream, however the stream is cut: the header of a frame, mostly. */
export class FixedBytes {
  readonly bytes: Buffer
  #filled = 0

  constructor(size: number) {
    this.bytes = Buffer.allocUnsafe(size)
  }

  get isFull(): boolean {
    return this.#filled === this.bytes.length
  }

  /** Takes what is missing from `source`, beginning at `from`, and returns where the rest begins. */
  fill(source: Uint8Array, from: number): number {
    const part = source.subarray(from, from + this.bytes.length - this.#filled)
    this.bytes.set(part, this.#filled)
    this.#filled += part.length
    return from + part.length
  }

  /** Begins anew. */
  clear(): void {
    this.#filled = 0
  }
}
