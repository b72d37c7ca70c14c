import { type ColumnSpec, layoutColumns } from '../../tui/view/text/column-layout.js'
import { cellWidth, fitText, withoutControls } from '../../tui/view/text/text-cells.js'

/** A column of a table for people. */
export interface TableColumn {
  readonly title: string
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
 * Formats rows under titles, in columns two spaces apart. On a terminal of `totalWidth` cells, long texts are cut;
 * `undefined` (a pipe, a file) cuts nothing. Numbers are never cut.
 */
export function formatTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  totalWidth: number | undefined,
): string {
  const table = new TableShape(columns)
  for (const row of rows) table.measure(row)
  const formatRow = table.place(totalWidth)
  return [table.titles, ...rows].map(formatRow).join('\n')
}

/** The widths of a table whose rows are not all in memory: measure each row first, then write each. */
export class TableShape {
  readonly titles: readonly string[]
  readonly #columns: readonly TableColumn[]
  readonly #widths: number[]
  readonly #isShown: boolean[]

  constructor(columns: readonly TableColumn[]) {
    this.#columns = columns
    this.titles = columns.map(({ title }) => title)
    this.#widths = this.titles.map(cellWidth)
    this.#isShown = columns.map(({ isLeftOutWhereEmpty }) => !isLeftOutWhereEmpty)
  }

  measure(row: readonly string[]): void {
    for (let at = 0; at < this.#widths.length; at++) {
      const width = cellWidth(withoutControls(row[at] ?? ''))
      if (width > this.#widths[at]!) this.#widths[at] = width
      if (row[at] !== '-') this.#isShown[at] = true
    }
  }

  /** Writes one row after the other, in `totalWidth` cells; `undefined` cuts nothing. */
  place(totalWidth: number | undefined): (row: readonly string[]) => string {
    const shown = this.#columns.map((column, at) => ({ column, at })).filter(({ at }) => this.#isShown[at])
    const specs = shown.map(({ column, at }): ColumnSpec => {
      const [width, { minWidth }] = [this.#widths[at]!, column]
      return { ...column, minWidth: minWidth === undefined ? width : Math.min(width, minWidth), width }
    })
    const placed = layoutColumns(specs, totalWidth ?? Number.POSITIVE_INFINITY, GAP)
    return (row) =>
      placed
        .map(({ index, width }) => {
          const { column, at } = shown[index]!
          return fitText(row[at] ?? '', width, { align: column.align })
        })
        .join(' '.repeat(GAP))
        .trimEnd()
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
