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

/** Compares the first record with the types of those below it: a header has none of them, data have all. */
export function judgeFirstRecord([fields = [], ...body]: readonly (readonly string[])[]): FirstRecord {
  let isData = false
  let isHeader = false
  for (const [column, name] of fields.entries()) {
    const values = body.map((record) => record[column] ?? '').filter((value) => value !== '')
    const type = values.length > 0 && TYPES.find((each) => values.every((value) => each.test(value.trim())))
    if (!type) continue
    if (type.test(name.trim())) isData = true
    else isHeader = true
  }
  return { fields, isAlone: body.length === 0, isHeader: isData === isHeader ? undefined : isHeader }
}

/**
 * Decides whether a file has a header. Where its file does not show it, `sibling` does: the first record of
 * another file with as many fields, one that shows it. Without any, all text is taken for names, as DuckDB takes it.
 */
export function hasHeader(first: FirstRecord, sibling: FirstRecord | undefined): boolean {
  if (first.isHeader !== undefined) return first.isHeader
  if (sibling?.isHeader === false) return false
  if (sibling?.fields.every((name, column) => name === first.fields[column])) return true
  return !(first.isAlone && first.fields.some(isTyped))
}
