import type { ToldDialect } from '../../model/sample-formats.js'
import { type FirstRecord, judgeFirstRecord } from './csv-header.js'

/** How the records of a file of delimited text are written. */
export interface CsvDialect {
  /** One character. */
  readonly delimiter: string
  /**
   * `enclose`: quotes enclose fields, and are doubled inside of them · `escape`: the same, or escaped by a backslash ·
   * `text`: they are ordinary characters.
   */
  readonly quotes: 'enclose' | 'escape' | 'text'
  /** Whether records that begin with `#` are remarks. */
  readonly hasComments: boolean
  /** Whether the first line is one that names the delimiter. */
  readonly hasDelimiterLine: boolean
}

/** `sep=;`, as Excel writes it above the header. */
export const DELIMITER_LINE = /^sep=([^"\w \r\n])\r?(?:\n|$)/i

const DELIMITERS = [',', ';', '\t', '|'] as const
/** Records to judge a file by. */
const JUDGED_RECORDS = 1000
const COMMENT = '#'

/**
 * Finds the dialect of a file from its first part, as DuckDB's sniffer does: the delimiter that gives the records the
 * same number of fields, most fields first. `usual` is the delimiter of the file's name: it wins where it fits. `quotes`
 * is what the whole file says. A line that names the delimiter decides, unless the user does.
 */
export function sniffDialect(head: string, { usual, quotes, told = {} }: SniffOptions): SniffedDialect {
  const [line = '', named] = DELIMITER_LINE.exec(head) ?? []
  const given = told.delimiter ?? named
  const delimiters = given === undefined ? [usual, ...DELIMITERS.filter((each) => each !== usual)] : [given]
  const records = head.slice(line.length)
  const judged = delimiters.map((delimiter) => judge(records, delimiter, quotes))
  const fitting = judged.filter(({ columns, isEven }) => columns > 1 && isEven)
  const chosen =
    fitting.find(({ delimiter }) => delimiter === usual) ??
    fitting.toSorted((a, b) => b.columns - a.columns)[0] ??
    judged[0]!
  const { delimiter, hasComments } = chosen
  const first = judgeFirstRecord(chosen.records)
  return { delimiter, quotes, hasComments, hasDelimiterLine: named !== undefined, first }
}

/** A dialect, and what the file shows of its header. */
export interface SniffedDialect extends CsvDialect {
  readonly first: FirstRecord
}

interface SniffOptions {
  readonly usual: string
  readonly quotes: CsvDialect['quotes']
  /** The dialect that the user gave. */
  readonly told?: ToldDialect | undefined
}

interface Judged {
  readonly delimiter: string
  readonly records: readonly (readonly string[])[]
  readonly columns: number
  /** Whether all records have the same number of fields. */
  readonly isEven: boolean
  readonly hasComments: boolean
}

function judge(head: string, delimiter: string, quotes: CsvDialect['quotes']): Judged {
  const all = splitRecords(head, delimiter, quotes)
  const plain = all.filter(([first]) => !first!.startsWith(COMMENT))
  const columns = plain[0]?.length ?? all[0]?.length ?? 1
  // A header may begin with `#`, too: then it has the fields of the others.
  const hasComments = plain.length > 0 && all[0]![0]!.startsWith(COMMENT) && all[0]!.length !== columns
  const records = hasComments ? plain : all
  return {
    delimiter,
    records,
    columns,
    isEven: records.every(({ length }) => length === columns),
    hasComments,
  }
}

/** The fields of the first records; the last one may be cut off by the end of the text, and is left out. */
function splitRecords(head: string, delimiter: string, quotes: CsvDialect['quotes']): string[][] {
  const records: string[][] = []
  for (let at = 0; at < head.length && records.length < JUDGED_RECORDS; ) {
    const end = quotes === 'text' ? head.indexOf('\n', at) : endOfQuoted(head, at, { delimiter, quotes })
    if (end < 0) break
    const record = head.slice(at, end).replace(/\r$/, '')
    if (record !== '') records.push([...parseRecord(record, delimiter, quotes)])
    at = end + 1
  }
  return records
}

function endOfQuoted(
  text: string,
  start: number,
  { delimiter, quotes }: Pick<CsvDialect, 'delimiter' | 'quotes'>,
): number {
  let isQuoted = false
  let isFieldStart = true
  for (let at = start; at < text.length; at++) {
    const character = text[at]
    if (isQuoted) {
      if (quotes === 'escape' && isEscape(text, at)) at++
      if (character !== '"') continue
      if (text[at + 1] === '"') at++
      else isQuoted = false
    } else if (character === '\n') return at
    else if (character === '"' && isFieldStart) isQuoted = true
    isFieldStart = character === delimiter
  }
  return -1
}

/** Names of the columns, each once: `a`, `a_1` as DuckDB has them, and `column0` for a column without a name. */
export function nameColumns(fields: readonly string[], hasNames: boolean): readonly string[] {
  const names = fields.map((field, column) => (hasNames && field.trim() !== '' ? field : `column${column}`))
  const taken = new Set<string>()
  return names.map((name) => {
    let unique = name
    for (let count = 1; taken.has(unique) || (unique !== name && names.includes(unique)); count++)
      unique = `${name}_${count}`
    taken.add(unique)
    return unique
  })
}

/** The fields of one record. */
export function parseRecord(
  record: string,
  delimiter: string,
  quotes: CsvDialect['quotes'] = 'enclose',
): readonly string[] {
  if (quotes === 'text') return record.split(delimiter)
  const fields: string[] = []
  for (let at = 0; at <= record.length; ) {
    let field = ''
    if (record[at] === '"') {
      const [text, end] = unquote(record, at + 1, quotes)
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
function unquote(record: string, start: number, quotes: CsvDialect['quotes']): readonly [string, number] {
  let text = ''
  let from = start
  for (let at = start; at < record.length; at++) {
    const isDoubled = record[at] === '"' && record[at + 1] === '"'
    if (isDoubled || (quotes === 'escape' && isEscape(record, at))) {
      text += record.slice(from, at++)
      from = at
    } else if (record[at] === '"') return [text + record.slice(from, at), at + 1]
  }
  return [text + record.slice(from), record.length]
}

/** Whether a backslash at `at` escapes what follows; before anything else it is text, as in `C:\data`. */
function isEscape(text: string, at: number): boolean {
  return text[at] === '\\' && (text[at + 1] === '"' || text[at + 1] === '\\')
}
