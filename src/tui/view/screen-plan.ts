import { findList, type ScreenState } from './screen-state.js'

/** Cells of the terminal. */
export interface ScreenSize {
  readonly columns: number
  readonly rows: number
}

/** How the rows and columns of the screen are divided. */
export interface ScreenPlan {
  /** Rows of the last 24 hours; 1 = one line without boxes, 0 = hidden. */
  readonly dayRows: number
  /** Index of the row with the names of the tabs; the list's heading is the next row. */
  readonly tabsRow: number
  /** Rows of the list, without its heading. */
  readonly listHeight: number
  /** Width of the pane beside the list with the copy under the cursor, in cells; 0 = hidden. */
  readonly sideColumns: number
  /** Rows of events under the list; 0 = hidden. */
  readonly eventRows: number
}

/** Lists of one copy or lease a row: beside them there is something to show. */
const OF_COPIES: readonly string[] = ['copies', 'leases', 'events']
const WIDE_COLUMNS = 150
const TALL_ROWS = 32
const BOX_COLUMNS = 100
const LOW_ROWS = 12

/**
 * Divides the screen. The list always has rows, and gives up only rows that it does not need: curves and events appear
 * only on tall screens.
 */
export function planScreen(state: ScreenState, { rows, columns }: ScreenSize): ScreenPlan {
  const isTall = rows >= TALL_ROWS
  const isOfCopies = OF_COPIES.includes(findList(state))
  const sideColumns = columns >= WIDE_COLUMNS && isOfCopies ? Math.min(80, Math.floor(columns * 0.36)) : 0
  const isLookingInside = state.detailCopyId !== undefined && sideColumns === 0
  const boxRows = isTall && columns >= BOX_COLUMNS ? Math.min(8, Math.floor(rows / 6)) : 1
  const dayRows = rows < LOW_ROWS || isLookingInside ? 0 : boxRows
  const eventRows = isTall && state.tab !== 'events' && !isLookingInside ? Math.floor(rows / 8) : 0
  const tabsRow = 1 + dayRows
  const taken = tabsRow + 2 + (eventRows > 0 ? eventRows + 1 : 0) + 1 // tabs, heading and footer
  return { dayRows, tabsRow, listHeight: Math.max(1, rows - taken), sideColumns, eventRows }
}
