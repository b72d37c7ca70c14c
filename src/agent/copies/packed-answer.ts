import type { ServerResponse } from 'node:http'
import { writeChunk } from './send-copy-file.js'

/** A place in an answer to which it can be taken back. */
interface Mark {
  readonly sentBytes: number
  readonly usedBytes: number
}

/** Puts many small pieces of an answer together in one buffer, and sends it whenever it is full. */
export class PackedAnswer {
  readonly #response: ServerResponse
  readonly #buffer: Buffer
  #usedBytes = 0
  #sentBytes = 0

  constructor(response: ServerResponse, buffer: Buffer) {
    this.#response = response
    this.#buffer = buffer
  }

  /** Makes room for so many bytes as far as the buffer has it, so that they can be taken back until all are there. */
  async reserve(bytes: number): Promise<void> {
    if (this.#usedBytes + bytes > this.#buffer.length) await this.flush()
  }

  /** Memory for what comes next, at least one byte; `took` says how much of it was filled. */
  async room(): Promise<Buffer> {
    if (this.#usedBytes === this.#buffer.length) await this.flush()
    return this.#buffer.subarray(this.#usedBytes)
  }

  took(bytes: number): void {
    this.#usedBytes += bytes
  }

  async put(bytes: Buffer): Promise<void> {
    for (let rest = bytes; rest.length > 0; ) {
      const taken = rest.copy(await this.room())
      this.took(taken)
      rest = rest.subarray(taken)
    }
  }

  mark(): Mark {
    return { sentBytes: this.#sentBytes, usedBytes: this.#usedBytes }
  }

  /** Takes back what came since. False: it was sent already. */
  takeBack({ sentBytes, usedBytes }: Mark): boolean {
    if (sentBytes !== this.#sentBytes) return false
    this.#usedBytes = usedBytes
    return true
  }

  /** Sends what is there. Rejects when the client has gone. */
  async flush(): Promise<void> {
    const piece = this.#buffer.subarray(0, this.#usedBytes)
    if (piece.length === 0) return
    this.#sentBytes += piece.length
    this.#usedBytes = 0
    await writeChunk(this.#response, piece)
  }
}
