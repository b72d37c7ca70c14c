import type { ServerResponse } from 'node:http'
import { writeChunk } from './send-copy-file.js'

/** A place in an answer to which `takeBack` can return. */
interface Mark {
  readonly sentBytes: number
  readonly usedBytes: number
}

/** Packs many small pieces of an answer into one buffer, and sends it when it is full. */
export class PackedAnswer {
  readonly #response: ServerResponse
  readonly #buffer: Buffer
  #usedBytes = 0
  #sentBytes = 0

  constructor(response: ServerResponse, buffer: Buffer) {
    this.#response = response
    this.#buffer = buffer
  }

  /** Makes room for this many bytes, up to the buffer's size, so that they can be taken back until complete. */
  async reserve(bytes: number): Promise<void> {
    if (this.#usedBytes + bytes > this.#buffer.length) await this.flush()
  }

  /** Memory for the next bytes, at least one; report with `took` how many you filled. */
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

  /** Takes back everything since the mark. Returns false if some of it was already sent. */
  takeBack({ sentBytes, usedBytes }: Mark): boolean {
    if (sentBytes !== this.#sentBytes) return false
    this.#usedBytes = usedBytes
    return true
  }

  /** Sends the buffered bytes. Rejects when the client has gone. */
  async flush(): Promise<void> {
    const piece = this.#buffer.subarray(0, this.#usedBytes)
    if (piece.length === 0) return
    this.#sentBytes += piece.length
    this.#usedBytes = 0
    await writeChunk(this.#response, piece)
  }
}
