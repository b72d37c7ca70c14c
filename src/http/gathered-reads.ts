/**
 * Gathers what is read of one answer in the memory of its listener. TLS gives out at most 16 KiB at a time; gathered, a
 * piece is what came in one turn of the event loop.
 */
export class GatheredReads {
  readonly #onBytes: (bytes: Uint8Array) => void
  /** Where the gathered bytes lie, and the next read. */
  #room: Buffer | undefined
  #gatheredBytes = 0
  #isDue = false

  constructor(onBytes: (bytes: Uint8Array) => void) {
    this.#onBytes = onBytes
  }

  /** Memory for the next read: behind the one before, or that of `ask` if nothing is gathered. */
  findRoom(ask: () => Buffer | undefined): Buffer | undefined {
    if (this.#gatheredBytes > 0) return this.#room!.subarray(this.#gatheredBytes)
    this.#room = ask()
    return this.#room
  }

  /**
   * Takes `length` bytes that were read into the memory of `findRoom`; false: into other memory. With the last of the
   * `leftBytes` of the answer everything is handed on at once, as the memory is the listener's until then.
   */
  add(length: number, leftBytes: number): boolean {
    if (this.#room === undefined) return false
    this.#gatheredBytes += length
    if (this.#gatheredBytes >= Math.min(leftBytes, this.#room.length)) this.flush()
    else if (!this.#isDue) {
      this.#isDue = true
      setImmediate(() => {
        this.#isDue = false
        this.flush()
      })
    }
    return true
  }

  /** Hands on what is gathered. */
  flush(): void {
    const length = this.#gatheredBytes
    if (length === 0) return
    const bytes = this.#room!.subarray(0, length)
    this.#room = this.#room!.subarray(length) // a socket asks for memory after each read: it has this one already
    this.#gatheredBytes = 0
    this.#onBytes(bytes)
  }

  /** Forgets what is gathered, and its memory. */
  drop(): void {
    this.#room = undefined
    this.#gatheredBytes = 0
  }
}
