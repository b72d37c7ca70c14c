import type { Socket } from 'node:net'
import type { FrameSink } from '../links.js'
import { type FrameHeader, formatHeader } from '../wire/frame.js'
import { type HostMemory, MEMORY_SLOTS } from './host-memory.js'

/** Memory cannot be damaged on the way, so frames carry the checksum of an empty payload. */
const NO_PAYLOAD = new Uint8Array(0)

/**
 * Sends frames through this rank's memory: payloads go into its slots in turn, headers to the sockets of the readers. A
 * reader answers with one byte per frame read; a slot is free when all readers have answered.
 */
export class MemoryWriter implements FrameSink {
  readonly #memory: HostMemory
  readonly #sockets: readonly Socket[]
  readonly #queue: { readonly header: FrameHeader; readonly payload: Uint8Array }[] = []
  /** Frames read so far by the reader at each socket. */
  readonly #read: number[]
  #written = 0
  #failure: Error | undefined
  #waiters: PromiseWithResolvers<void>[] = []

  constructor(memory: HostMemory, sockets: readonly Socket[]) {
    this.#memory = memory
    this.#sockets = sockets
    this.#read = sockets.map(() => 0)
    for (const [at, socket] of sockets.entries())
      socket.on('data', (answers) => {
        this.#read[at]! += answers.length
        this.#pump()
      })
  }

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
    while (this.#failure === undefined && this.#written - Math.min(...this.#read) < MEMORY_SLOTS) {
      const frame = this.#queue.shift()
      if (!frame) break
      this.#memory.write(this.#written % MEMORY_SLOTS, frame.payload)
      this.#written++
      const header = formatHeader(frame.header, NO_PAYLOAD)
      for (const socket of this.#sockets) socket.write(header)
    }
    this.#settle()
  }

  #settle(): void {
    if (this.#failure === undefined && this.#queue.length > 0) return
    for (const waiter of this.#waiters) this.#failure ? waiter.reject(this.#failure) : waiter.resolve()
    this.#waiters = []
  }
}
