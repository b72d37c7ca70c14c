import type { Duplex } from 'node:stream'

// Messages in JSON, one per line. Only a line feed ends a line: node:readline also ends one at U+2028, which JSON
// leaves unescaped in strings.

/** Maximum length of a line, in bytes. */
export const MAX_LINE_BYTES = 1024 * 1024
const LINE_FEED = 10
/** Maximum number of a line's characters in an error. */
const SHOWN_CHARACTERS = 80

/** The other end sent something that is not a message. */
class MalformedLine extends Error {
  constructor(found: string, cause?: unknown) {
    super(`not a message of dsc: ${found}`, { cause })
  }
}

/** Splits a stream of bytes in pieces of any size into lines. */
export class LineReader {
  readonly #mostBytes: number
  /** The pieces of an incomplete line. */
  #pieces: Buffer[] = []
  #piecesBytes = 0
  #unread: Buffer = Buffer.alloc(0)

  constructor(mostBytes = MAX_LINE_BYTES) {
    this.#mostBytes = mostBytes
  }

  /** The bytes after the last requested line. */
  get rest(): Buffer {
    return Buffer.concat([...this.#pieces, this.#unread])
  }

  /** Yields the lines that end in `chunk`, each split off on request, except empty ones: those are keep-alives. */
  *read(chunk: Buffer): Generator<string> {
    this.#unread = chunk
    for (let end = this.#unread.indexOf(LINE_FEED); end !== -1; end = this.#unread.indexOf(LINE_FEED)) {
      this.#takePiece(end)
      this.#unread = this.#unread.subarray(1)
      const line = Buffer.concat(this.#pieces).toString('utf8')
      this.#pieces = []
      this.#piecesBytes = 0
      if (line !== '') yield line
    }
    this.#takePiece(this.#unread.length)
  }

  #takePiece(bytes: number): void {
    this.#piecesBytes += bytes
    if (this.#piecesBytes > this.#mostBytes)
      throw new MalformedLine(`a line of more than ${this.#mostBytes} bytes`)
    this.#pieces.push(this.#unread.subarray(0, bytes))
    this.#unread = this.#unread.subarray(bytes)
  }
}

/** Formats one message. */
export function formatJsonLine(message: object): string {
  return `${JSON.stringify(message)}\n`
}

/** Reads the messages of a stream until it ends; `parse` throws for an invalid message. `mostBytes`: of one line. */
export async function* readJsonLines<T>(
  stream: AsyncIterable<Buffer>,
  parse: (raw: unknown) => T,
  mostBytes?: number,
): AsyncGenerator<T> {
  const reader = new LineReader(mostBytes)
  for await (const chunk of stream) for (const line of reader.read(chunk)) yield parseLine(line, parse)
}

/**
 * Calls `onMessage` with each message of a socket. If `parse` throws, destroys the socket. If `onMessage` returns
 * 'raw', `onRaw` gets the bytes after its message, and all that follow.
 */
export function listenForLines<T>(
  socket: Duplex,
  handlers: {
    readonly parse: (raw: unknown) => T
    readonly onMessage: (message: T) => 'raw' | undefined
    readonly onRaw?: (rest: Buffer) => void
  },
): void {
  const { parse, onMessage, onRaw } = handlers
  const reader = new LineReader()
  const onData = (chunk: Buffer) => {
    try {
      for (const line of reader.read(chunk)) {
        if (onMessage(parseLine(line, parse)) === 'raw') {
          socket.off('data', onData)
          return onRaw?.(reader.rest)
        }
        if (socket.destroyed) return
      }
    } catch (error) {
      if (!(error instanceof MalformedLine)) throw error
      socket.destroy(error)
    }
  }
  socket.on('data', onData)
}

/** Sends one message. A closed connection drops it silently: its `close` event reports that. */
export function sendLine(socket: Duplex, message: object): void {
  if (!socket.destroyed && socket.writable) socket.write(formatJsonLine(message))
}

function parseLine<T>(line: string, parse: (raw: unknown) => T): T {
  try {
    return parse(JSON.parse(line))
  } catch (error) {
    throw new MalformedLine(line.slice(0, SHOWN_CHARACTERS), error)
  }
}
