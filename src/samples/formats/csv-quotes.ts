import { readSync } from 'node:fs'
import type { CsvDialect } from './csv-dialect.js'

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const QUOTE = 0x22
const TAB = 0x09
const WINDOW_BYTES = 1 << 20

/**
 * Finds whether quotes enclose fields, from all of a file, as quotes may first appear far down. They are text where
 * every line has the same number of fields as it stands and reading them as enclosing would not do: one is followed by
 * more text, or by nothing to the file's end; or, between tabs, lines would be joined (Common Voice and Tatoeba write
 * quotes so, and nobody writes tabs and line feeds inside of quotes).
 */
export function judgeQuotes(fd: number, sizeBytes: number, delimiter: string): CsvDialect['quotes'] {
  const judge = new QuoteJudge(delimiter.charCodeAt(0))
  const isQuoted = eachWindow(fd, sizeBytes, (bytes) => bytes.includes(QUOTE))
  if (!isQuoted) return 'enclose'
  eachWindow(fd, sizeBytes, (bytes) => {
    judge.read(bytes)
    return judge.isDecided
  })
  return judge.verdict
}

/** Reads a file until `isEnough`; returns whether it was. */
function eachWindow(fd: number, sizeBytes: number, isEnough: (bytes: Buffer) => boolean): boolean {
  const window = Buffer.allocUnsafe(Math.min(WINDOW_BYTES, Math.max(1, sizeBytes)))
  for (let at = 0; at < sizeBytes; ) {
    const count = readSync(fd, window, 0, window.length, at)
    if (count === 0) return false
    if (isEnough(window.subarray(0, count))) return true
    at += count
  }
  return false
}

class QuoteJudge {
  readonly #delimiter: number
  /** Delimiters in the first line, and in this one; −1: unknown yet. */
  #expected = -1
  #found = 0
  #isEven = true
  #hasQuotes = false
  #isBroken = false
  #isJoining = false
  #isQuoted = false
  #isFieldStart = true
  /** The last byte was a quote inside of quotes: it closes them, or is doubled. */
  #isClosing = false
  #lineBytes = 0

  constructor(delimiter: number) {
    this.#delimiter = delimiter
  }

  /** Whether the rest of the file cannot change the verdict. */
  get isDecided(): boolean {
    return !this.#isEven
  }

  get verdict(): CsvDialect['quotes'] {
    this.#endLine()
    const isBroken = this.#isBroken || (this.#isQuoted && !this.#isClosing)
    const isText = isBroken || (this.#isJoining && this.#delimiter === TAB)
    const hasColumns = this.#expected > 0 // a line of one field is even whatever it holds
    return this.#hasQuotes && this.#isEven && hasColumns && isText ? 'text' : 'enclose'
  }

  read(bytes: Buffer): void {
    for (const byte of bytes) {
      if (byte === LINE_FEED) this.#endLine()
      else {
        if (byte !== CARRIAGE_RETURN) this.#lineBytes++
        if (byte === this.#delimiter) this.#found++
      }
      this.#follow(byte)
    }
  }

  #endLine(): void {
    if (this.#lineBytes > 0) {
      if (this.#expected < 0) this.#expected = this.#found
      else if (this.#found !== this.#expected) this.#isEven = false
    }
    this.#found = 0
    this.#lineBytes = 0
  }

  /** Follows one byte with quotes that enclose. */
  #follow(byte: number): void {
    if (this.#isClosing) {
      this.#isClosing = false
      if (byte === QUOTE) return // doubled
      this.#isQuoted = false
      if (byte !== this.#delimiter && byte !== LINE_FEED && byte !== CARRIAGE_RETURN) this.#isBroken = true
    } else if (this.#isQuoted) {
      if (byte === QUOTE) this.#isClosing = true
      else if (byte === LINE_FEED) this.#isJoining = true
      return
    } else if (byte === QUOTE && this.#isFieldStart) {
      this.#isQuoted = true
      this.#hasQuotes = true
      return
    }
    this.#isFieldStart = byte === this.#delimiter || byte === LINE_FEED
  }
}
