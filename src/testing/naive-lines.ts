import { parseRecord } from '../samples/formats/csv-dialect.js'

/** Reads records character by character, by the formats' rules, and whether a quote stays open at the end. */
export function readLinesNaively(text: string, delimiter: string | undefined) {
  const records: string[] = []
  for (let at = text.startsWith('\uFEFF') ? 1 : 0; at < text.length; at += 1) {
    const start = at
    for (let isField = true; isField; ) {
      for (
        let isQuoted = delimiter !== undefined && text[at] === '"';
        isQuoted;
        isQuoted = text[at] === '"'
      ) {
        const close = text.indexOf('"', at + 1)
        if (close < 0) return { records, isOpen: true }
        at = close + 1
      }
      while (at < text.length && text[at] !== '\n' && text[at] !== delimiter) at += 1
      isField = delimiter !== undefined && text[at] === delimiter
      if (isField) at += 1
    }
    records.push(text.slice(start, at).replace(/\r$/, ''))
  }
  return { records, isOpen: false }
}

/** The records that can be read; of CSV below the first one, those with as many fields. */
export function readableLines(records: readonly string[], delimiter: string | undefined): readonly string[] {
  if (delimiter === undefined) return records.filter(isJson)
  const count = (record: string) => parseRecord(record, delimiter).length
  return records.slice(1).filter((record) => count(record) === count(records[0]!))
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
