import type { Duplex } from 'node:stream'

// Messages that are JSON, one per line. A line ends with a line feed and nothing else: node:readline ends one at U+2028,
// too, which JSON leaves in the strings that it writes.

/** Maximum length of a line, in bytes. */
export const MAX_LINE_BYTES = 1024 * 1024
const LINE_FEED = 10
/** Characters of a line that an error shows. */
const SHOWN_CHARACTERS = 80

/** The other end sent something that is not a message. */
class MalformedLine extends Error {
  constructor(found: string, cause?: unknown) {
    super(`not a message of dsc: ${found}`, { cause })
  }
}

/** Cuts a stream of bytes into lines, whatever the pieces it comes in. */
export class LineReader {
  /** The pieces of a line that has not ended. */
  #pieces: Buffer[] = []
  #piecesBytes = 0
  #unread: Buffer = Buffer.alloc(0)

  /** The bytes behind the last line that was asked for. */
  get rest(): Buffer {
    return Buffer.concat([...this.#pieces, this.#unread])
  }

  /** Yields the lines that end in `chunk`, each cut when it is asked for, without the empty ones: those only show life. */
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
    if (this.#piecesBytes > MAX_LINE_BYTES)
      throw new MalformedLine(`a line of more than ${MAX_LINE_BYTES} bytes`)
    this.#pieces.push(this.#unread.subarray(0, bytes))
    this.#unread = this.#unread.subarray(bytes)
  }
}

/** Writes one message. */
export function formatJsonLine(message: object): string {
  return `${JSON.stringify(message)}\n`
}

/** Reads the messages of a stream until it ends; `parse` throws for what is not one. */
export async function* readJsonLines<T>(
  stream: AsyncIterable<Buffer>,
  parse: (raw: unknown) => T,
): AsyncGenerator<T> {
  const reader = new LineReader()
  for await (const chunk of stream) for (const line of reader.read(chunk)) yield parseLine(line, parse)
}

/**
 * Calls `onMessage` with each message of a socket. What `parse` throws for is not a message, and destroys the socket.
 * Where `onMessage` returns 'raw', the bytes behind its message, and all that follow, are for `onRaw`.
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

/** Sends one message. A connection that is gone swallows it: its `close` event tells. */
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
