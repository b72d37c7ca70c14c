import { closeSync, openSync } from 'node:fs'
import { type BytePath, toBytes } from '../byte-path.js'
import { type CsvDialect, type SniffedDialect, sniffDialect } from './csv-dialect.js'
import { hasHeader } from './csv-header.js'
import { judgeQuotes } from './csv-quotes.js'
import type { IndexRequest } from './format.js'
import { HEAD_BYTES, RecordDamage, type RecordFile, readHead } from './scan-records.js'

/** How one file of a folder is written. */
export interface FileDialect extends CsvDialect {
  /** Whether the first record names the fields. */
  readonly hasHeader: boolean
}

/** Files to search for one that shows whether it has a header. */
const SEARCHED_FILES = 64
const LINE_END = Buffer.from('\n')

/** Finds the dialects of a folder's files. They are parts of one table where they have the same number of fields. */
export class CsvFolder {
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
