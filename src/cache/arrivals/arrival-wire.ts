import type { Socket } from 'node:net'
import type { ReaderStatus } from '../../model/reader-status.js'
import type { Urgency } from '../../model/urgency.js'

/**
 * What a reader asks for: an object by its key, to be told once it is proven; or a range of one (key, offset, length in
 * bytes), to be told as soon as its bytes are written. They are proven with their object, later.
 */
export type Asked = string | readonly [key: string, offset: number, length: number]

/**
 * What readers of an arriving copy and its stager say to each other over the socket in its staging folder, one JSON
 * object a line. A reader says `order` (what it will use, in that order; more of it may follow) and `want` (what it
 * waits for, and how urgently); the stager answers each `want` with `there`, at once or when that is so, or with `unknown`. `spoilt` is an
 * object of which ranges were told of, and which was then found to be other than its source: it is fetched again.
 * A stager that ends closes the connection: readers look at the copy again. A reader may say its `name`; whoever asks
 * for the `status` is told of all `readers`.
 */
type FromReader =
  | { readonly order: readonly Asked[] }
  | { readonly want: Asked; readonly urgency: Urgency }
  | { readonly name: string }
  | { readonly status: true }
/** What the stager says to a reader. */
export type FromStager =
  | { readonly arrivals: typeof ARRIVALS_VERSION }
  | { readonly there: Asked }
  | { readonly unknown: Asked }
  | { readonly spoilt: string }
  | { readonly readers: readonly ReaderStatus[] }

/** Said first by the stager; raise it with every change of the messages. */
export const ARRIVALS_VERSION = 4

/** Longer lines are no messages of ours, bytes. */
const MAX_LINE_BYTES = 1024 * 1024
const LINE_END = 10

/** The socket in the folder of a staging: reached through the held folder its path fits into an address (107 bytes). */
export const SOCKET_NAME = 'arrivals.sock'

/** Calls `take` with each message of a connection; ends the connection when one cannot be read. */
export function readArrivalMessages(socket: Socket, take: (message: unknown) => void): void {
  let rest: Buffer[] = []
  let restBytes = 0
  const takeLine = (line: Buffer) => {
    try {
      take(JSON.parse(line.toString()))
    } catch {
      socket.destroy()
    }
  }
  socket.on('data', (chunk: Buffer) => {
    let from = 0
    // Not by node:readline, to which a key with U+2028 is two lines.
    for (
      let end = chunk.indexOf(LINE_END);
      end !== -1 && !socket.destroyed;
      end = chunk.indexOf(LINE_END, from)
    ) {
      takeLine(Buffer.concat([...rest, chunk.subarray(from, end)]))
      from = end + 1
      rest = []
      restBytes = 0
    }
    rest.push(chunk.subarray(from))
    restBytes += chunk.length - from
    if (restBytes > MAX_LINE_BYTES) socket.destroy()
  })
}

/** Sends one message, as a line; nothing happens on a socket that is gone. */
export function sendArrivalMessage(socket: Socket, message: FromReader | FromStager): void {
  if (!socket.destroyed) socket.write(`${JSON.stringify(message)}\n`)
}
