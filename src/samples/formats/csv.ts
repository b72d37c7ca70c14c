import { isUtf8 } from 'node:buffer'
import { closeSync, openSync } from 'node:fs'
import { type BytePath, toBytes } from '../byte-path.js'
import {
  type CsvDialect,
  DELIMITER_LINE,
  nameColumns,
  parseRecord,
  type SniffedDialect,
  sniffDialect,
} from './csv-dialect.js'
import { hasHeader } from './csv-header.js'
import { judgeQuotes } from './csv-quotes.js'
import type { Format, IndexRequest } from './format.js'
import {
  HEAD_BYTES,
  indexRecords,
  LineEnds,
  RecordDamage,
  type RecordEnds,
  type RecordFile,
  type RecordFormat,
  readHead,
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
    recognition: { title, mark: pattern, holdsSamples: (path) => pattern.test(path), takesAnyName: true },
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

/** How one file of a folder is written. */
interface FileDialect extends CsvDialect {
  /** Whether the first record names the fields. */
  readonly hasHeader: boolean
}

/** Files to search for one that shows whether it has a header. */
const SEARCHED_FILES = 64
const LINE_END = Buffer.from('\n')

/** Finds the dialects of a folder's files. They are parts of one table where they have the same number of fields. */
class CsvFolder {
  readonly #request: IndexRequest
  /** The delimiter of the files' names. */
  readonly #usual: string
  readonly #sniffed = new Map<BytePath, SniffedDialect>()

  constructor(request: IndexRequest, usual: string) {
    this.#request = request
    this.#usual = usual
  }

  findDialect(file: RecordFile): FileDialect {
    const { header } = this.#request.dialect ?? {}
    const sniffed = this.#sniff(file)
    if (header !== undefined) return { ...sniffed, hasHeader: header }
    const sibling = sniffed.first.isHeader === undefined ? this.#findSibling(sniffed) : undefined
    // Of one record, a sibling also shows the delimiter: "1,5;2".
    const usual = sniffed.first.isAlone ? sibling?.delimiter : undefined
    const found = usual === undefined ? sniffed : sniff(file, { usual, told: this.#request.dialect })
    return { ...found, hasHeader: hasHeader(found.first, sibling?.first) }
  }

  #sniff(file: RecordFile): SniffedDialect {
    const known = this.#sniffed.get(file.path)
    if (known) return known
    const sniffed = sniff(file, { usual: this.#usual, told: this.#request.dialect })
    // Only of files that others search: the fields, as slices, keep the file's first part in memory.
    if (this.#sniffed.size < SEARCHED_FILES) this.#sniffed.set(file.path, sniffed)
    return sniffed
  }

  /** The first file that shows whether it has a header, of those with as many fields. */
  #findSibling({ first }: SniffedDialect): SniffedDialect | undefined {
    for (const { path, size } of this.#request.files.slice(0, SEARCHED_FILES)) {
      const sniffed = this.#sniffed.get(path) ?? this.#sniffUnopened(path, size)
      if (sniffed?.first.isHeader === undefined) continue
      if (sniffed.first.fields.length === first.fields.length) return sniffed
    }
    return undefined
  }

  #sniffUnopened(path: BytePath, size: number): SniffedDialect | undefined {
    const fd = openSync(toBytes(`${this.#request.root}/${path}`), 'r')
    try {
      return this.#sniff({ fd, path, size, head: readHead(fd) })
    } catch (error) {
      if (error instanceof RecordDamage) return undefined // told when its turn comes
      throw error
    } finally {
      closeSync(fd)
    }
  }
}

/** Reads the first part and, if there are quotes, all of a file to find how it is written. */
function sniff(
  { fd, size, head }: RecordFile,
  { usual, told = {} }: { readonly usual: string; readonly told: IndexRequest['dialect'] },
): SniffedDialect {
  const text = (size <= HEAD_BYTES ? Buffer.concat([head, LINE_END]) : head).toString()
  const sniffAs = (quotes: CsvDialect['quotes']) => sniffDialect(text, { usual, quotes, told })
  if (told.quote === 'none') return sniffAs('text')
  const judge = (delimiter: string) => {
    const quotes = judgeQuotes(fd, size, delimiter)
    return sniffAs(quotes === 'text' && told.quote !== undefined ? 'enclose' : quotes)
  }
  const { delimiter } = sniffAs('text')
  const found = judge(delimiter)
  return found.delimiter === delimiter ? found : judge(found.delimiter)
}
