import { isUtf8 } from 'node:buffer'
import { DELIMITER_LINE, nameColumns, parseRecord } from './csv-dialect.js'
import { CsvFolder, type FileDialect } from './csv-folder.js'
import type { Format } from './format.js'
import {
  indexRecords,
  LineEnds,
  RecordDamage,
  type RecordEnds,
  type RecordFormat,
  type WindowPlace,
} from './scan-records.js'

const LINE_FEED = 0x0a
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Records of fields separated by commas, below a record of names (RFC 4180), or in the dialect that the file shows. */
export const CSV = makeFormat({ title: 'CSV', pattern: /\.csv$/i, delimiter: ',' })
/** The same with tabs. */
export const TSV = makeFormat({ title: 'TSV', pattern: /\.tsv$/i, delimiter: '\t' })

function makeFormat(options: { title: string; pattern: RegExp; delimiter: string }): Format {
  const { title, pattern, delimiter: usual } = options
  return {
    recognition: { title, holdsSamples: (path) => pattern.test(path), takesAnyName: true },
    index: (request) => {
      const folder = new CsvFolder(request, usual)
      return indexRecords(request, (file) => readAs(folder.findDialect(file)))
    },
  }
}

const COMMENT = 0x23

function readAs(dialect: FileDialect): RecordFormat {
  const { delimiter, quotes, hasHeader, hasComments, hasDelimiterLine } = dialect
  return {
    ends: quotes === 'text' ? new LineEnds() : new CsvEnds(delimiter.charCodeAt(0), quotes),
    isSkipped: (record) =>
      record.length === 0 ||
      (hasComments && record[0] === COMMENT) ||
      (hasDelimiterLine && record.length < 8 && DELIMITER_LINE.test(record.toString())),
    describe: (first) => ({
      format: 'csv',
      delimiter,
      ...(quotes !== 'enclose' && { quotes }),
      columns: nameColumns(parseRecord(first.toString(), delimiter, quotes), hasHeader),
    }),
    hasHeader,
    findFault: (record, encoding, rule) => {
      if (!isUtf8(record)) return 'text that is not UTF-8'
      if (rule === 'raise') return undefined // its fields are counted when it is read
      const { length } = parseRecord(record.toString(), delimiter, quotes)
      const { length: expected } = encoding.columns ?? []
      return length === expected ? undefined : `${length} fields where the header has ${expected}`
    },
  }
}

/**
 * Finds record ends. A record goes on after a line feed inside quotes; bytes are checked one by one only with quotes.
 */
class CsvEnds implements RecordEnds {
  readonly #delimiter: number
  readonly #isEscaping: boolean
  #window = Buffer.alloc(0)
  #isLast = false
  /** Position of the first quote that is not before the record. */
  #quote = 0

  constructor(delimiter: number, quotes: 'enclose' | 'escape') {
    this.#delimiter = delimiter
    this.#isEscaping = quotes === 'escape'
  }

  load(window: Buffer<ArrayBuffer>, place: WindowPlace): void {
    this.#window = window
    this.#isLast = place === 'last'
    this.#quote = -1
  }

  find(start: number): number {
    if (this.#quote < start) {
      const quote = this.#window.indexOf(QUOTE, start)
      this.#quote = quote < 0 ? Number.POSITIVE_INFINITY : quote
    }
    const end = this.#window.indexOf(LINE_FEED, start)
    if (end >= 0 && end < this.#quote) return end
    return this.#quote === Number.POSITIVE_INFINITY ? this.#endOfWindow() : this.#findQuoted(start)
  }

  #findQuoted(start: number): number {
    const window = this.#window
    let isQuoted = false
    let isFieldStart = true
    for (let at = start; at < window.length; at++) {
      const byte = window[at]!
      if (isQuoted) {
        if (byte === BACKSLASH && this.#isEscaping) at++
        if (byte !== QUOTE) continue
        if (window[at + 1] === QUOTE) at++
        else isQuoted = false
      } else if (byte === LINE_FEED) return at
      else if (byte === QUOTE && isFieldStart) isQuoted = true
      isFieldStart = byte === this.#delimiter
    }
    if (isQuoted && this.#isLast) throw new RecordDamage('a quote that nothing closes')
    return this.#endOfWindow()
  }

  #endOfWindow(): number {
    return this.#isLast ? this.#window.length : -1
  }
}
