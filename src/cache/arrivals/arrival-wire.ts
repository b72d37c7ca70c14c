import type { Socket } from 'node:net'
import { sendLine } from '../../frames/lines.js'
import type { ReaderStatus } from '../../model/reader-status.js'
import { parseUrgency, type Urgency } from '../../model/urgency.js'

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
export type FromReader =
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

/** The socket in the folder of a staging: reached through the held folder its path fits into an address (107 bytes). */
export const SOCKET_NAME = 'arrivals.sock'

/** Reads what a reader says; throws for what is not one of its messages. */
export function parseFromReader(raw: unknown): FromReader {
  const { order, want, urgency, name, status } = raw as Readonly<Record<string, unknown>>
  if (Array.isArray(order) && order.every(isAsked)) return { order }
  if (isAsked(want)) return { want, urgency: parseUrgency(urgency) ?? 'wanted' }
  if (typeof name === 'string') return { name }
  if (status === true) return { status }
  throw new TypeError('expected order, want, name or status')
}

/** Reads what a stager says; throws for anything else: whoever may write into the folder may listen there. */
export function parseFromStager(raw: unknown): FromStager {
  const { arrivals, there, unknown, spoilt, readers } = raw as Readonly<Record<string, unknown>>
  if (arrivals === ARRIVALS_VERSION) return { arrivals }
  if (isAsked(there)) return { there }
  if (isAsked(unknown)) return { unknown }
  if (typeof spoilt === 'string') return { spoilt }
  if (Array.isArray(readers) && readers.every(isReader)) return { readers }
  throw new TypeError('expected arrivals, there, unknown, spoilt or readers')
}

function isAsked(raw: unknown): raw is Asked {
  if (typeof raw === 'string') return true
  if (!Array.isArray(raw) || raw.length !== 3) return false
  const [key, offset, length] = raw as readonly unknown[]
  return typeof key === 'string' && isCount(offset) && isCount(length)
}

function isReader(raw: Partial<Record<keyof ReaderStatus, unknown>> | null): raw is ReaderStatus {
  const { name, ordered, waits, waitsFor } = raw ?? {}
  const isCounted = Number.isSafeInteger(ordered) && Number.isSafeInteger(waits)
  return (
    isCounted &&
    typeof name === 'string' &&
    Array.isArray(waitsFor) &&
    waitsFor.every((key) => typeof key === 'string')
  )
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** Sends one message; nothing happens on a socket that is gone. */
export function sendArrivalMessage(socket: Socket, message: FromReader | FromStager): void {
  sendLine(socket, message)
}
