import { collectPayload, LengthPrefixedReader, type MessageShape } from '../../frames/length-prefixed.js'
import type { SqlRow, SqlValue } from '../database/sql-database.js'
import { type QueryResult, readValue } from './connection.js'

/** PostgreSQL's protocol, version 3.0 (its documentation, "Message Formats"): the messages of one connection. */
const PROTOCOL = 196_608
const TLS_REQUEST = 80_877_103
const LENGTH_BYTES = 4

/** A message from the server: its letter, and the body after its length. */
export interface Message {
  readonly kind: string
  readonly body: Buffer
}

/** Asks whether the server speaks TLS; it answers `S` or `N`. */
export function askForTls(): Buffer {
  return withLength('', int32(TLS_REQUEST))
}

/** The first message of a connection. */
export function formatStartup(parameters: Readonly<Record<string, string | undefined>>): Buffer {
  const words = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [text(name), text(value)],
  )
  return withLength('', int32(PROTOCOL), ...words, Buffer.alloc(1))
}

/** Answers a request for authentication; the first one names the mechanism. */
export function formatSasl(answer: string, mechanism?: string): Buffer {
  const words = Buffer.from(answer)
  return mechanism === undefined
    ? withLength('p', words)
    : withLength('p', text(mechanism), int32(words.length), words)
}

/** Several statements without parameters, as one transaction unless they say otherwise. */
export function formatSimpleQuery(sql: string): Buffer {
  return withLength('Q', text(sql))
}

/** One statement with parameters: parses it, runs it and requests its rows, without waiting in between. */
export function formatQuery(sql: string, parameters: readonly SqlValue[]): Buffer {
  const none = Buffer.alloc(2)
  const values = parameters.flatMap((value) => {
    if (value === null) return [int32(-1)]
    const bytes = Buffer.from(String(value))
    return [int32(bytes.length), bytes]
  })
  return Buffer.concat([
    withLength('P', text(''), text(sql), none),
    withLength('B', text(''), text(''), none, int16(parameters.length), ...values, none),
    withLength('D', Buffer.from('P\0')),
    withLength('E', text(''), int32(0)),
    withLength('S'),
  ])
}

export const FAREWELL = withLength('X')

/** A letter, then the length of itself and of what follows. */
const SHAPE: MessageShape<string> = {
  startBytes: 1 + LENGTH_BYTES,
  headBytesOf: () => 0,
  parse: (start) => ({
    head: String.fromCharCode(start[0]!),
    payloadBytes: start.readInt32BE(1) - LENGTH_BYTES,
  }),
}
/** PostgreSQL itself sends no message larger than 1 GiB. */
const MAX_MESSAGE_BYTES = 2 ** 30

/** Parses messages from bytes as they are pushed. */
export function readServerMessages(onMessage: (message: Message) => void): LengthPrefixedReader<string> {
  return new LengthPrefixedReader(SHAPE, (kind, bytes) => {
    if (!(bytes >= 0 && bytes <= MAX_MESSAGE_BYTES)) throw new Error(`a message of ${bytes} bytes`)
    return collectPayload(bytes, (body) => onMessage({ kind, body }))
  })
}

interface Column {
  readonly name: string
  readonly oid: number
}

/** Builds the answer to one query from its messages; of several statements, the last one's rows count. */
export class AnswerReader {
  #columns: readonly Column[] = []
  #rows: SqlRow[] = []
  #result: QueryResult = { rows: [], changes: 0 }
  #failure: Error | undefined

  add({ kind, body }: Message): void {
    if (kind === 'T') this.#columns = readColumns(body)
    else if (kind === 'D') this.#rows.push(readRow(body, this.#columns))
    else if (kind === 'E') this.#failure ??= readFailure(body)
    else if (kind === 'C') {
      const changes = Number(/(\d+)\0$/.exec(body.toString('latin1'))?.[1] ?? 0)
      this.#result = { rows: this.#rows, changes }
      this.#rows = []
    }
  }

  /** Throws the server's error if the query failed. */
  finish(): QueryResult {
    if (this.#failure) throw this.#failure
    return this.#result
  }
}

/** Formats a failure as the driver would: the message and PostgreSQL's code. */
export function readFailure(body: Buffer): Error {
  const fields = new Map(
    body
      .toString('utf8')
      .split('\0')
      .map((field) => [field.slice(0, 1), field.slice(1)]),
  )
  return Object.assign(new Error(fields.get('M') ?? 'an error without a message'), { code: fields.get('C') })
}

function readColumns(body: Buffer): readonly Column[] {
  const columns: Column[] = []
  const bytesBehindName = 18
  let at = 2
  for (let left = body.readInt16BE(0); left > 0; left--) {
    const end = body.indexOf(0, at)
    columns.push({ name: body.toString('utf8', at, end), oid: body.readInt32BE(end + 7) })
    at = end + 1 + bytesBehindName
  }
  return columns
}

function readRow(body: Buffer, columns: readonly Column[]): SqlRow {
  const row: Record<string, SqlValue> = {}
  let at = 2
  for (const { name, oid } of columns) {
    const length = body.readInt32BE(at)
    at += LENGTH_BYTES
    row[name] = length < 0 ? null : readValue(oid, body.toString('utf8', at, at + length))
    at += Math.max(0, length)
  }
  return row
}

function withLength(kind: string, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  return Buffer.concat([Buffer.from(kind), int32(body.length + LENGTH_BYTES), body])
}

function text(words: string): Buffer {
  return Buffer.from(`${words}\0`)
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}
