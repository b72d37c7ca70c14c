import type { Socket } from 'node:net'
import { sendLine } from '../../frames/lines.js'
import type { ReaderStatus } from '../../model/reader-status.js'
import { parseUrgency, type Urgency } from '../../model/urgency.js'

/**
 * A request of a reader: an object by its key, to be reported once it is verified; or a range of one (key, offset,
 * length in bytes), to be reported as soon as its bytes are written. They are verified later, with their object.
 */
export type Asked = string | readonly [key: string, offset: number, length: number]

/**
 * Messages between the readers of an arriving copy and its stager, over the socket in the staging folder, one JSON
 * object a line. A reader sends `order` (what it will use, in that order; more may follow) and `want` (what it waits
 * for, and how urgently). The stager answers each `want` with `there`, as soon as that is true, or with `unknown`.
 * `spoilt` names an object that did not match its source after ranges of it were reported as there; it is fetched
 * again. A stager that ends closes the connection, and readers look at the copy again. A reader may give its `name`;
 * the answer to `status` lists all `readers`.
 */
export type FromReader =
  | { readonly order: readonly Asked[] }
  | { readonly want: Asked; readonly urgency: Urgency }
  | { readonly name: string }
  | { readonly status: true }
/** A message from the stager to a reader. */
export type FromStager =
  | { readonly arrivals: typeof ARRIVALS_VERSION }
  | { readonly there: Asked }
  | { readonly unknown: Asked }
  | { readonly spoilt: string }
  | { readonly readers: readonly ReaderStatus[] }

/** The stager sends it first; raise it with every change of the messages. */
export const ARRIVALS_VERSION = 4

/** Maximum number of objects and ranges in one `order`: the stager answers others between two of them. */
export const MAX_ORDER_KEYS = 500

/** The socket in a staging's folder. Through the held folder, its path fits into a socket address (107 bytes). */
export const SOCKET_NAME = 'arrivals.sock'

/** Parses a reader's message; throws for anything else. */
export function parseFromReader(raw: unknown): FromReader {
  const { order, want, urgency, name, status } = raw as Readonly<Record<string, unknown>>
  if (Array.isArray(order) && order.length <= MAX_ORDER_KEYS && order.every(isAsked)) return { order }
  if (isAsked(want)) return { want, urgency: parseUrgency(urgency) ?? 'wanted' }
  if (typeof name === 'string') return { name }
  if (status === true) return { status }
  throw new TypeError('expected order, want, name or status')
}

/** Parses a stager's message; throws for anything else: any user who may write to the folder may listen there. */
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

/** Sends one message; does nothing on a closed socket. */
export function sendArrivalMessage(socket: Socket, message: FromReader | FromStager): void {
  sendLine(socket, message)
}
