import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import type { Tab } from './lists/list-rows.js'
import type { ScreenState } from './screen-state.js'

/** Cells of the terminal. */
export interface ScreenSize {
  readonly columns: number
  readonly rows: number
}

/** How the rows and columns of the screen are divided. */
export interface ScreenPlan {
  /** Rows of nodes, without their heading; 0 = the section is hidden. */
  readonly nodeRows: number
  /** Rows of downloads above the list; 0 = hidden. */
  readonly transferRows: number
  /** Index of the row with the names of the lists; the list's heading is the next row. */
  readonly tabsRow: number
  /** Rows of the list, without its heading. */
  readonly listHeight: number
  /** Width of the pane beside the list with the copy under the cursor, in cells; 0 = hidden. */
  readonly sideColumns: number
  /** Rows of events under the list; 0 = hidden. */
  readonly eventRows: number
}

/** Lists with rows about more than one copy: they use the full width. */
const OF_NODES: readonly Tab[] = ['nodes', 'datasets', 'shares']
const WIDE_COLUMNS = 150
const TALL_ROWS = 32

/**
 * Divides the screen. The list always has rows, and gives up only rows that it does not need: events appear only on
 * tall screens, and nodes and downloads shrink on short ones.
 */
export function planScreen(
  snapshot: Pick<StatusSnapshot, 'nodes' | 'transfers'>,
  state: ScreenState,
  size: ScreenSize,
): ScreenPlan {
  const { rows, columns } = size
  const isTall = rows >= TALL_ROWS
  const sideColumns =
    columns >= WIDE_COLUMNS && !OF_NODES.includes(state.tab) ? Math.min(80, Math.floor(columns * 0.36)) : 0
  const isLookingInside = state.detailCopyId !== undefined && sideColumns === 0
  const mostNodes = rows < 12 ? 0 : isTall ? Math.floor(rows / 6) : 3
  const nodeRows =
    state.tab === 'nodes' || isLookingInside ? 0 : Math.min(Math.max(1, snapshot.nodes.length), mostNodes)
  const mostTransfers = rows < 16 ? 0 : isTall ? Math.floor(rows / 8) : 3
  const transferRows =
    state.tab === 'transfers' || isLookingInside ? 0 : Math.min(snapshot.transfers.length, mostTransfers)
  const eventRows = isTall && state.tab !== 'events' && !isLookingInside ? Math.floor(rows / 6) : 0
  const tabsRow =
    1 + // title
    (nodeRows > 0 ? nodeRows + 1 : 0) +
    (transferRows > 0 ? transferRows + 1 : 0)
  const taken =
    tabsRow +
    2 + // tabs and heading
    (eventRows > 0 ? eventRows + 1 : 0) +
    1 // footer
  const listHeight = Math.max(1, rows - taken)
  return { nodeRows, transferRows, tabsRow, listHeight, sideColumns, eventRows }
}
