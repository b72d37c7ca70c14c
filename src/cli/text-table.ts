import { type ColumnSpec, layoutColumns } from '../tui/view/column-layout.js'
import { cellWidth, fitText, withoutControls } from '../tui/view/text-cells.js'

/** A column of a table for people. */
export interface TableColumn {
  readonly title: string
  readonly align?: 'left' | 'right'
  /** The column may be cut down to so many cells; without it every cell is shown whole. */
  readonly minWidth?: number
  /** The column with the highest number is left out first where even cut columns do not fit. */
  readonly dropOrder?: number
}

const GAP = 2

/**
 * Writes rows under titles, columns two spaces apart. On a terminal of `totalWidth` cells long texts are cut;
 * `undefined` (a pipe, a file) cuts nothing. Numbers are never cut.
 */
export function formatTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  totalWidth: number | undefined,
): string {
  const specs = columns.map((column, at): ColumnSpec => {
    const cells = rows.map((row) => cellWidth(withoutControls(row[at] ?? '')))
    const width = cells.reduce((widest, cell) => Math.max(widest, cell), cellWidth(column.title))
    const { minWidth } = column
    return minWidth === undefined
      ? { ...column, minWidth: width, width }
      : { ...column, minWidth: Math.min(width, minWidth), width }
  })
  const placed = layoutColumns(specs, totalWidth ?? Number.POSITIVE_INFINITY, GAP)
  return [columns.map((column) => column.title), ...rows]
    .map((row) =>
      placed
        .map(({ index, width }) => fitText(row[index] ?? '', width, columns[index]!.align ?? 'left'))
        .join(' '.repeat(GAP))
        .trimEnd(),
    )
    .join('\n')
}

/** Cells of the terminal that stdout is, or undefined where nothing should be cut. */
export function findTerminalWidth(): number | undefined {
  return process.stdout.isTTY ? (process.stdout.columns ?? 80) : undefined
}
