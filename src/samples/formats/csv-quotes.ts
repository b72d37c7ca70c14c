import { readSync } from 'node:fs'
import type { CsvDialect } from './csv-dialect.js'
import { BYTE_ORDER_MARK } from './scan-records.js'

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const QUOTE = 0x22
const BACKSLASH = 0x5c
const WINDOW_BYTES = 1 << 20

/**
 * Finds how quotes are meant, from all of a file, as they may first appear far down. A backslash escapes a quote where
 * that reading closes every quote, and the one without is broken, or gives more records of other lengths. Quotes are
 * text where every line has the same number of fields as it stands and reading them as enclosing would not do: one is
 * followed by more text, or by nothing to the file's end; or, between tabs, lines would be joined (Common Voice and
 * Tatoeba write quotes so, and nobody writes tabs and line feeds inside of quotes).
 */
export function judgeQuotes(fd: number, sizeBytes: number, delimiter: string): CsvDialect['quotes'] {
  if (!eachWindow(fd, sizeBytes, (bytes) => bytes.includes(QUOTE))) return 'enclose'
  const read = (quotes: 'enclose' | 'escape') => {
    const reading = new QuoteReading(delimiter.charCodeAt(0), quotes)
    eachWindow(fd, sizeBytes, (bytes) => {
      reading.read(bytes)
      return false
    })
    reading.end()
    return reading
  }
  const enclosed = read('enclose')
  if (enclosed.hasEscapes) {
    const { isSound, unevenRecords } = read('escape')
    if (isSound && (!enclosed.isSound || unevenRecords < enclosed.unevenRecords)) return 'escape'
  }
  const isText = !enclosed.isSound || (enclosed.isJoining && delimiter === '\t')
  return isText && enclosed.isEven ? 'text' : 'enclose'
}

/** Reads a file until `isEnough`; returns whether it was. */
function eachWindow(fd: number, sizeBytes: number, isEnough: (bytes: Buffer) => boolean): boolean {
  const window = Buffer.allocUnsafe(Math.min(WINDOW_BYTES, Math.max(1, sizeBytes)))
  for (let at = 0; at < sizeBytes; ) {
    const count = readSync(fd, window, 0, window.length, at)
    if (count === 0) return false
    const start = at === 0 && window.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0
    if (isEnough(window.subarray(start, count))) return true
    at += count
  }
  return false
}

/** Where in a record a byte is. */
const FIELD_START = 0
const PLAIN = 1
const QUOTED = 2
/** Behind a backslash inside of quotes. */
const ESCAPED = 3
/** Behind a quote inside of quotes: it closes them, or is doubled. */
const CLOSING = 4

/** Reads a file with quotes that enclose fields. */
class QuoteReading {
  /** Whether what follows a closing quote ends its field, and every quote is closed. */
  isSound = true
  /** Whether a line feed is inside of quotes. */
  isJoining = false
  /** Whether a backslash is before a quote inside of quotes. */
  hasEscapes = false
  readonly #delimiter: number
  readonly #isEscaping: boolean
  readonly #records = new FieldCount()
  /** The same as if quotes were text. */
  readonly #lines = new FieldCount()
  #state = FIELD_START
  #previous = 0
  /** Bytes of the line before the window. */
  #lineBytes = 0

  constructor(delimiter: number, quotes: 'enclose' | 'escape') {
    this.#delimiter = delimiter
    this.#isEscaping = quotes === 'escape'
  }

  /** Whether every line has the same number of fields, at least two: lines of one are even in any file. */
  get isEven(): boolean {
    return this.#lines.uneven === 0 && this.#lines.expected > 0
  }

  /** Records with another number of fields than the first. */
  get unevenRecords(): number {
    return this.#records.uneven
  }

  /** Reads the next bytes. All in one loop: a call for each byte takes five times as long. */
  read(bytes: Buffer): void {
    const delimiter = this.#delimiter
    const records = this.#records
    const lines = this.#lines
    let state = this.#state
    let previous = this.#previous
    let lineStart = -this.#lineBytes
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!
      if (byte === delimiter) lines.found++
      if (state === QUOTED) {
        if (byte === QUOTE) {
          state = CLOSING
          if (previous === BACKSLASH) this.hasEscapes = true
        } else if (byte === LINE_FEED) this.isJoining = true
        else if (byte === BACKSLASH && this.#isEscaping) state = ESCAPED
      } else if (state === ESCAPED) state = QUOTED
      else if (byte === QUOTE && state !== PLAIN) state = QUOTED
      else if (byte === delimiter) {
        records.found++
        state = FIELD_START
      } else if (byte === LINE_FEED) {
        if (at - lineStart > (previous === CARRIAGE_RETURN ? 1 : 0)) records.end()
        state = FIELD_START
      } else {
        if (state === CLOSING && byte !== CARRIAGE_RETURN) this.isSound = false
        state = PLAIN
      }
      if (byte === LINE_FEED) {
        if (at - lineStart > (previous === CARRIAGE_RETURN ? 1 : 0)) lines.end()
        lineStart = at + 1
      }
      previous = byte
    }
    this.#state = state
    this.#previous = previous
    this.#lineBytes = bytes.length - lineStart
  }

  /** Ends the file. */
  end(): void {
    if (this.#state === QUOTED || this.#state === ESCAPED) this.isSound = false
    if (this.#lineBytes === 0) return
    this.#records.end()
    this.#lines.end()
  }
}

/** Counts delimiters, and compares them with the first record's. */
class FieldCount {
  found = 0
  /** Delimiters of the first; −1: none yet. */
  expected = -1
  uneven = 0

  end(): void {
    if (this.expected < 0) this.expected = this.found
    else if (this.found !== this.expected) this.uneven++
    this.found = 0
  }
}
