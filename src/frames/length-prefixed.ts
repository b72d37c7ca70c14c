import { FixedBytes } from '../platform/fixed-bytes.js'

/** Receives the payload of a message piece by piece; a piece is valid only during the call. */
export interface PayloadSink {
  take(piece: Buffer): void
  /** The payload is complete. */
  end(): void
}

/** How a wire delimits messages: a start of fixed length, a head, and a payload. */
export interface MessageShape<Head> {
  readonly startBytes: number
  /** Length of the head, in bytes. Throws for an invalid start. */
  readonly headBytesOf: (start: Buffer) => number
  /** Throws for an invalid head. */
  readonly parse: (start: Buffer, head: Buffer) => { readonly head: Head; readonly payloadBytes: number }
}

/** Collects a payload in its own memory, for `onWhole`. The caller limits its length. */
export function collectPayload(payloadBytes: number, onWhole: (payload: Buffer) => void): PayloadSink {
  const payload = Buffer.allocUnsafe(payloadBytes)
  let filled = 0
  return {
    take(piece) {
      payload.set(piece, filled)
      filled += piece.length
    },
    end: () => onWhole(payload),
  }
}

/** Extracts messages from a stream of bytes in pieces of any size. */
export class LengthPrefixedReader<Head> {
  readonly #shape: MessageShape<Head>
  readonly #onBegin: (head: Head, payloadBytes: number) => PayloadSink
  readonly #start: FixedBytes
  #head: FixedBytes | undefined
  #payload: { readonly sink: PayloadSink; leftBytes: number } | undefined

  /** `onBegin` returns the sink for a message's payload once its head has arrived. */
  constructor(shape: MessageShape<Head>, onBegin: (head: Head, payloadBytes: number) => PayloadSink) {
    this.#shape = shape
    this.#onBegin = onBegin
    this.#start = new FixedBytes(shape.startBytes)
  }

  /** Takes the next bytes of the stream. Throws if they cannot be a message; the stream is then unusable. */
  push(chunk: Uint8Array): void {
    const bytes = Buffer.isBuffer(chunk)
      ? chunk
      : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    for (let at = 0; at < bytes.length; )
      at = this.#payload ? this.#takePayload(this.#payload, bytes, at) : this.#takeStart(bytes, at)
  }

  /** Returns the index of the next unread byte. */
  #takeStart(bytes: Buffer, from: number): number {
    let at = from
    if (!this.#head) {
      at = this.#start.fill(bytes, at)
      if (!this.#start.isFull) return at
      this.#head = new FixedBytes(this.#shape.headBytesOf(this.#start.bytes))
    }
    at = this.#head.fill(bytes, at)
    if (this.#head.isFull) this.#begin(this.#head.bytes)
    return at
  }

  #begin(headBytes: Buffer): void {
    const { head, payloadBytes } = this.#shape.parse(this.#start.bytes, headBytes)
    this.#start.clear()
    this.#head = undefined
    const sink = this.#onBegin(head, payloadBytes)
    if (payloadBytes === 0) sink.end()
    else this.#payload = { sink, leftBytes: payloadBytes }
  }

  #takePayload(
    payload: { readonly sink: PayloadSink; leftBytes: number },
    bytes: Buffer,
    from: number,
  ): number {
    const piece = bytes.subarray(from, from + payload.leftBytes)
    payload.leftBytes -= piece.length
    payload.sink.take(piece)
    if (payload.leftBytes === 0) {
      this.#payload = undefined
      payload.sink.end()
    }
    return from + piece.length
  }
}
