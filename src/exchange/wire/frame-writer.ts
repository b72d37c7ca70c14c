import type { Socket } from 'node:net'
import type { FrameSink } from '../links.js'
import { type FrameHeader, formatHeader } from './frame.js'

/** Maximum segments handed to the socket and not yet taken by the kernel. */
const MAX_IN_FLIGHT = 2

/**
 * Sends frames over one connection, never holding more than two segments in the socket's own queue. The owner of the
 * socket handles its errors and calls `fail`.
 */
export class FrameWriter implements FrameSink {
  readonly #socket: Socket
  readonly #queue: { readonly header: FrameHeader; readonly payload: Uint8Array }[] = []
  #inFlight = 0
  #failure: Error | undefined
  #waiters: PromiseWithResolvers<void>[] = []

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** The payload's checksum is computed when the frame's turn comes. */
  send(header: FrameHeader, payload: Uint8Array): void {
    this.#queue.push({ header, payload })
    this.#pump()
  }

  flushed(): Promise<void> {
    const waiter = Promise.withResolvers<void>()
    this.#waiters.push(waiter)
    this.#settle()
    return waiter.promise
  }

  fail(error: Error): void {
    this.#failure ??= error
    this.#queue.length = 0
    this.#settle()
  }

  #pump(): void {
    while (this.#failure === undefined && this.#inFlight < MAX_IN_FLIGHT) {
      const frame = this.#queue.shift()
      if (!frame) break
      this.#inFlight++
      this.#socket.cork()
      this.#socket.write(formatHeader(frame.header, frame.payload))
      this.#socket.write(frame.payload, () => {
        this.#inFlight--
        this.#pump()
        this.#settle()
      })
      this.#socket.uncork()
    }
  }

  #settle(): void {
    if (this.#failure === undefined && (this.#inFlight > 0 || this.#queue.length > 0)) return
    for (const waiter of this.#waiters) this.#failure ? waiter.reject(this.#failure) : waiter.resolve()
    this.#waiters = []
  }
}
