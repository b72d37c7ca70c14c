import { listTroubles } from '../../../cache/status/list-troubles.js'
import { findColumn } from '../lists/draw-list.js'
import { placeList } from '../lists/list-position.js'
import type { Tab } from '../lists/list-rows.js'
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
  /** The troubles in the first line. */
  | { readonly kind: 'trouble' }
  | { readonly kind: 'nothing' }

/** Modes whose text covers the lists. */
const COVERED: readonly string[] = ['help', 'report', 'troubles']
const NOTHING: Spot = { kind: 'nothing' }

/** Finds the item that `drawScreen` draws at a cell. */
export function findSpot(input: ScreenInput, at: { readonly column: number; readonly row: number }): Spot {
  const { snapshot, state, rows, size } = input
  if (!snapshot || COVERED.includes(state.mode.kind)) return NOTHING
  if (at.row >= size.rows - drawFooter(state, size.columns).length) return NOTHING
  const plan = planScreen(state, size)
  if (at.row === 0) return listTroubles(snapshot).length > 0 ? { kind: 'trouble' } : NOTHING
  if (at.row < plan.tabsRow) return NOTHING
  const isListHidden = state.detailCopyId !== undefined && plan.sideColumns === 0
  if (at.row === plan.tabsRow) {
    if (isListHidden) return NOTHING
    const tab = findTab(input, snapshot, at.column)
    return tab === undefined ? NOTHING : { kind: 'tab', tab }
  }
  const width = size.columns - plan.sideColumns
  if (isListHidden || at.column >= width) return NOTHING
  if (at.row === plan.tabsRow + 1) {
    const title = findColumn(rows, width, at.column)
    return title === undefined ? NOTHING : { kind: 'heading', title }
  }
  const list = { keys: rows.keys, height: plan.listHeight }
  const line = at.row - plan.tabsRow - 2
  const index = placeList(state.positions[rows.list], list).offset + line
  return line < plan.listHeight && index < rows.keys.length ? { kind: 'row', index } : NOTHING
}
