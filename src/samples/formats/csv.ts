import type { Format } from './format.js'
import { indexRecords, RecordDamage, type RecordEnds, type WindowPlace } from './scan-records.js'

const LINE_FEED = 0x0a
const QUOTE = 0x22

/** Records of fields separated by commas, below a record of names (RFC 4180). */
export const CSV = makeFormat({ title: 'CSV', pattern: /\.csv$/i, delimiter: ',' })
/** The same with tabs; quotes count as in CSV, as spreadsheets and Python's `excel-tab` write them. */
export const TSV = makeFormat({ title: 'TSV', pattern: /\.tsv$/i, delimiter: '\t' })

function makeFormat(options: { title: string; pattern: RegExp; delimiter: string }): Format {
  const { title, pattern, delimiter } = options
  return {
    recognition: { title, holdsSamples: (path) => pattern.test(path), takesAnyName: true },
    index: (request) =>
      indexRecords(request, {
        makeEnds: () => new CsvEnds(delimiter.charCodeAt(0)),
        isSkipped: (record) => record.length === 0,
        describe: (header) => ({
          format: 'csv',
          delimiter,
          columns: parseRecord(header.toString(), delimiter),
        }),
        hasHeader: true,
      }),
  }
}

/**
 * Finds record ends. A record goes on after a line feed inside quotes; bytes are checked one by one only with quotes.
 */
class CsvEnds implements RecordEnds {
  readonly #delimiter: number
  #window = Buffer.alloc(0)
  #isLast = false
  /** Position of the first quote that is not before the record. */
  #quote = 0

  constructor(delimiter: number) {
    this.#delimiter = delimiter
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

/** The fields of one record. */
export function parseRecord(record: string, delimiter: string): readonly string[] {
  const fields: string[] = []
  for (let at = 0; at <= record.length; ) {
    let field = ''
    if (record[at] === '"') {
      const [text, end] = unquote(record, at + 1)
      field = text
      at = end
    }
    const end = record.indexOf(delimiter, at)
    const stop = end < 0 ? record.length : end
    fields.push(field + record.slice(at, stop))
    at = stop + 1
  }
  return fields
}

/** Returns the text up to its closing quote, and the position behind that quote. */
function unquote(record: string, start: number): readonly [string, number] {
  let text = ''
  for (let at = start; ; ) {
    const quote = record.indexOf('"', at)
    if (quote < 0) return [text + record.slice(at), record.length]
    text += record.slice(at, quote)
    if (record[quote + 1] !== '"') return [text, quote + 1]
    text += '"'
    at = quote + 2
  }
}
