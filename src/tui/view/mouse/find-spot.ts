import { findColumn } from '../lists/draw-list.js'
import { placeList } from '../lists/list-position.js'
import type { Tab } from '../lists/list-rows.js'
import { listShownNodes } from '../screen.js'
import { drawFooter } from '../screen-frame.js'
import type { ScreenInput } from '../screen-input.js'
import { planScreen } from '../screen-plan.js'
import { findTab } from '../tab-bar.js'

/** The item at a cell of the screen. */
export type Spot =
  | { readonly kind: 'tab'; readonly tab: Tab }
  /** The heading of a column of the list. */
  | { readonly kind: 'heading'; readonly title: string }
  /** A row of the list, by its index in all rows. */
  | { readonly kind: 'row'; readonly index: number }
  /** A node above the list. */
  | { readonly kind: 'node'; readonly node: string }
  | { readonly kind: 'nothing' }

const NOTHING: Spot = { kind: 'nothing' }

/** Finds the item that `drawScreen` draws at a cell. */
export function findSpot(input: ScreenInput, at: { readonly column: number; readonly row: number }): Spot {
  const { snapshot, state, rows, size } = input
  if (!snapshot || state.mode.kind === 'help' || state.mode.kind === 'report') return NOTHING
  if (at.row >= size.rows - drawFooter(state, size.columns).length) return NOTHING
  const plan = planScreen(snapshot, state, size)
  if (at.row < plan.tabsRow) {
    // The title and the heading of the nodes are the first two rows.
    const node = plan.nodeRows > 0 ? listShownNodes(snapshot, plan)[at.row - 2] : undefined
    return node === undefined ? NOTHING : { kind: 'node', node }
  }
  if (at.row === plan.tabsRow) {
    const tab = findTab(input, snapshot, at.column)
    return tab === undefined ? NOTHING : { kind: 'tab', tab }
  }
  const isListHidden = state.detailCopyId !== undefined && plan.sideColumns === 0
  const width = size.columns - plan.sideColumns
  if (isListHidden || at.column >= width) return NOTHING
  if (at.row === plan.tabsRow + 1) {
    const title = findColumn(rows, width, at.column)
    return title === undefined ? NOTHING : { kind: 'heading', title }
  }
  const list = { keys: rows.keys, height: plan.listHeight }
  const line = at.row - plan.tabsRow - 2
  const index = placeList(state.positions[rows.tab], list).offset + line
  return line < plan.listHeight && index < rows.keys.length ? { kind: 'row', index } : NOTHING
}
