import type { Socket } from 'node:net'
import { type FrameHeader, formatHeader } from './frame.js'

/** Segments handed to the socket and not yet taken by the kernel, at most. */
const MOST_IN_FLIGHT = 2

/** Sends frames over one connection, never holding more than two segments in the socket's own queue. */
export interface FrameWriter {
  /**
   * Queues a frame. The payload is not copied and must stay as it is until `flushed` resolves;
   * its checksum is taken when the frame's turn comes.
   */
  readonly send: (header: FrameHeader, payload: Uint8Array) => void
  /** Resolves when the kernel has taken every frame sent so far; rejects when the writer fails. */
  readonly flushed: () => Promise<void>
  readonly fail: (error: Error) => void
}

/** Writes frames to `socket`. Errors of the socket are its owner's business: the owner calls `fail`. */
export function createFrameWriter(socket: Socket): FrameWriter {
  const queue: { readonly header: FrameHeader; readonly payload: Uint8Array }[] = []
  let inFlight = 0
  let failure: Error | undefined
  let waiters: PromiseWithResolvers<void>[] = []
  const settle = () => {
    if (failure === undefined && (inFlight > 0 || queue.length > 0)) return
    for (const waiter of waiters) failure ? waiter.reject(failure) : waiter.resolve()
    waiters = []
  }
  const pump = () => {
    while (failure === undefined && inFlight < MOST_IN_FLIGHT) {
      const frame = queue.shift()
      if (!frame) break
      inFlight++
      socket.cork()
      socket.write(formatHeader(frame.header, frame.payload))
      socket.write(frame.payload, () => {
        inFlight--
        pump()
        settle()
      })
      socket.uncork()
    }
  }
  return {
    send(header, payload) {
      queue.push({ header, payload })
      pump()
    },
    flushed() {
      const waiter = Promise.withResolvers<void>()
      waiters.push(waiter)
      settle()
      return waiter.promise
    },
    fail(error) {
      failure ??= error
      queue.length = 0
      settle()
    },
  }
}
