import { type ColumnSpec, layoutColumns } from '../../tui/view/text/column-layout.js'
import { cellWidth, fitText, withoutControls } from '../../tui/view/text/text-cells.js'

/** A column of a table for people. */
export interface TableColumn<Row> {
  readonly title: string
  readonly cell: (row: Row) => string
  readonly align?: 'left' | 'right'
  /** Cells to which the column can be cut; without it, every cell is shown whole. */
  readonly minWidth?: number
  /** Omits the column if all of its cells are `-`. */
  readonly isLeftOutWhereEmpty?: boolean
  /** If even the cut columns do not fit, the column with the highest number is dropped first. */
  readonly dropOrder?: number
}

const GAP = 2

/**
 * Formats rows under titles, in columns two spaces apart; nothing without rows. On a terminal of `totalWidth` cells, long
 * texts are cut; `undefined` (a pipe, a file) cuts nothing. Numbers are never cut.
 */
export function formatTable<Row>(
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  totalWidth: number | undefined,
): string {
  if (rows.length === 0) return ''
  const shape = new TableShape(columns)
  for (const row of rows) shape.measure(row)
  const table = shape.place(totalWidth)
  return [table.titles, ...rows.map(table.format)].join('\n')
}

/** The widths of a table whose rows are not all in memory: measure each row first, then write each. */
export class TableShape<Row> {
  readonly #columns: readonly TableColumn<Row>[]
  readonly #widths: number[]
  readonly #isShown: boolean[]

  constructor(columns: readonly TableColumn<Row>[]) {
    this.#columns = columns
    this.#widths = columns.map(({ title }) => cellWidth(title))
    this.#isShown = columns.map(({ isLeftOutWhereEmpty }) => !isLeftOutWhereEmpty)
  }

  measure(row: Row): void {
    for (const [at, { cell }] of this.#columns.entries()) {
      const text = cell(row)
      this.#widths[at] = Math.max(this.#widths[at]!, cellWidth(withoutControls(text)))
      if (text !== '-') this.#isShown[at] = true
    }
  }

  /** The line of titles and what formats one row after the other, in `totalWidth` cells; `undefined` cuts nothing. */
  place(totalWidth: number | undefined): { readonly titles: string; readonly format: (row: Row) => string } {
    const shown = this.#columns.map((column, at) => ({ column, at })).filter(({ at }) => this.#isShown[at])
    const specs = shown.map(({ column, at }): ColumnSpec => {
      const [width, { minWidth }] = [this.#widths[at]!, column]
      return { ...column, minWidth: minWidth === undefined ? width : Math.min(width, minWidth), width }
    })
    const placed = layoutColumns(specs, totalWidth ?? Number.POSITIVE_INFINITY, GAP)
    const write = (cellOf: (column: TableColumn<Row>) => string) =>
      placed
        .map(({ index, width }) => {
          const { column } = shown[index]!
          return fitText(cellOf(column), width, { align: column.align })
        })
        .join(' '.repeat(GAP))
        .trimEnd()
    return { titles: write(({ title }) => title), format: (row) => write(({ cell }) => cell(row)) }
  }
}

/** Maximum line length unless everything was requested: dsc cuts a line before a terminal or pager wraps it. */
export const MAX_LINE_CELLS = 200

/** For a terminal that reports no width, or 0, as under `expect` and in some containers. */
const DEFAULT_CELLS = 80

/** The width of stdout's terminal in cells; undefined if nothing should be cut. */
export function findTerminalWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns || DEFAULT_CELLS : undefined
}
