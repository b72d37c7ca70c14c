/** The sort column of a list; none: the record's order. */
export interface ListSort {
  /** Title of the column. */
  readonly column: string
  readonly isReversed: boolean
}

/** Sort values of a row, by column title: text from A to Z, largest numbers first. */
export type SortValues<Row> = Readonly<Record<string, (row: Row) => number | string>>

/** The rows in the chosen order; rows with equal values keep their order. */
export function sortRows<Row>(
  rows: readonly Row[],
  sort: ListSort | undefined,
  values: SortValues<Row>,
): readonly Row[] {
  const find = sort && Object.hasOwn(values, sort.column) ? values[sort.column] : undefined
  if (!sort || !find) return rows
  const sign = sort.isReversed ? -1 : 1
  return rows.toSorted((a, b) => {
    const [left, right] = [find(a), find(b)]
    if (typeof left === 'number' && typeof right === 'number') return sign * (right - left)
    return sign * (left < right ? -1 : left > right ? 1 : 0)
  })
}

/** The column after the current sort column; after the last, the record's order. */
export function chooseNextSort(sort: ListSort | undefined, columns: readonly string[]): ListSort | undefined {
  const next = columns[sort ? columns.indexOf(sort.column) + 1 : 0]
  return next === undefined ? undefined : { column: next, isReversed: false }
}

/** `by SIZE`, or `by SIZE reversed`. */
export function describeSort({ column, isReversed }: ListSort): string {
  return `by ${column}${isReversed ? ' reversed' : ''}`
}
