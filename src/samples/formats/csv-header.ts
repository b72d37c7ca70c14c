/** The first record of a file of delimited text. */
export interface FirstRecord {
  readonly fields: readonly string[]
  /** Whether no other record follows. */
  readonly isAlone: boolean
  /** Whether it names the fields; undefined: the file does not show it. */
  readonly isHeader: boolean | undefined
}

/** Types that a header's names do not have. */
const TYPES = [/^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i, /^\d{4}-\d\d-\d\d([T ][\d:.]+)?/, /^(true|false)$/i]

const isTyped = (value: string) => TYPES.some((type) => type.test(value.trim()))

/** A text for no value. In a first record it may also be the name of a column, as that of an index is empty. */
const MISSING = /^(n\/?a|nan|null|none|\\n|[-?])?$/i

/** Compares the first record with the types of those below it: a header has none of them, data have all. */
export function judgeFirstRecord([fields = [], ...body]: readonly (readonly string[])[]): FirstRecord {
  const found = new Set<'name' | 'value' | 'missing'>()
  for (const [column, field] of fields.entries()) {
    const values = body.map((record) => (record[column] ?? '').trim()).filter((value) => !MISSING.test(value))
    const type = values.length > 0 && TYPES.find((each) => values.every((value) => each.test(value)))
    if (!type) continue
    const text = field.trim()
    found.add(type.test(text) ? 'value' : MISSING.test(text) ? 'missing' : 'name')
  }
  const isHeader = found.has('name')
  const isClear = isHeader ? !found.has('value') : found.has('value') && !found.has('missing')
  return { fields, isAlone: body.length === 0, isHeader: isClear ? isHeader : undefined }
}

/**
 * Decides whether a file has a header. If the file does not show it, the first record of a `sibling` decides: of a file
 * that shows it and has as many fields. Without one, text alone counts as names, as in DuckDB.
 */
export function hasHeader(first: FirstRecord, sibling: FirstRecord | undefined): boolean {
  if (first.isHeader !== undefined) return first.isHeader
  if (sibling?.isHeader === false) return false
  if (sibling?.fields.every((name, column) => name === first.fields[column])) return true
  return !(first.isAlone && first.fields.some(isTyped))
}
