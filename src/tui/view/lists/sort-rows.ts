/** By which column a list is sorted; none: as the record orders it. */
export interface ListSort {
  /** Its title. */
  readonly column: string
  readonly isReversed: boolean
}

/** What a row is sorted by, by the title of a column: texts from A to Z, numbers the largest first. */
export type SortValues<Row> = Readonly<Record<string, (row: Row) => number | string>>

/** The rows in the order that was chosen; rows of the same value stay as they were. */
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

/** The column after the one that is sorted by now; after the last, the order of the record. */
export function chooseNextSort(sort: ListSort | undefined, columns: readonly string[]): ListSort | undefined {
  const next = columns[sort ? columns.indexOf(sort.column) + 1 : 0]
  return next === undefined ? undefined : { column: next, isReversed: false }
}

/** `by SIZE`, or `by SIZE reversed`. */
export function describeSort({ column, isReversed }: ListSort): string {
  return `by ${column}${isReversed ? ' reversed' : ''}`
}
