import { type ListPosition, moveBy, placeList } from '../lists/list-position.js'
import { type ListRows, type ScopeTarget, TABS, type Tab } from '../lists/list-rows.js'
import { FIRST_POSITIONS, type ScreenState } from '../screen-state.js'
import type { KeyPress, KeyTarget } from './key-press.js'

/** Moves the cursor of the list by `by` rows. */
export function moveCursor(state: ScreenState, by: number, { rows, height }: KeyTarget): ScreenState {
  const list = { keys: rows.keys, height }
  return withPosition(state, rows.tab, moveBy(placeList(state.positions[rows.tab], list), by, list))
}

function withPosition(state: ScreenState, tab: Tab, position: ListPosition): ScreenState {
  return { ...state, positions: { ...state.positions, [tab]: position } }
}

/** Sets a filter and moves every list to its top. */
export function withFilter(state: ScreenState, filter: string): ScreenState {
  return { ...state, filter, positions: FIRST_POSITIONS }
}

/** Moves by `by` tabs, wrapping around. */
export function showTab(state: ScreenState, by: number): ScreenState {
  return { ...state, tab: TABS[(TABS.indexOf(state.tab) + by + TABS.length) % TABS.length]! }
}

/** Enters a node, dataset or copy: the lists show only its items. */
export function enterScope(state: ScreenState, to: ScopeTarget, tab: Tab): ScreenState {
  const scope = { ...to, from: state.tab, outer: state.scope }
  return { ...withFilter(state, ''), tab, scope, mode: { kind: 'browse' }, detailCopyId: undefined }
}

/** Leaves the last entered scope and returns to the list it was entered from. */
export function leaveScope(state: ScreenState): ScreenState {
  if (!state.scope) return state
  return { ...state, tab: state.scope.from, scope: state.scope.outer }
}

/** Returns from the details of a copy to the list. */
export function leaveDetail(state: ScreenState): ScreenState {
  return { ...state, mode: { kind: 'browse' }, detailCopyId: undefined }
}

/** Sorts the list by the column; a second time reverses the order. */
export function sortByColumn(state: ScreenState, column: string, { tab }: ListRows): ScreenState {
  const before = state.sorts[tab]
  const isReversed = before?.column === column && !before.isReversed
  return { ...state, sorts: { ...state.sorts, [tab]: { column, isReversed } } }
}

/** Returns from a question or the help to the previous view. */
export function leaveQuestion(state: ScreenState): ScreenState {
  const { detailCopyId } = state
  return {
    ...state,
    mode:
      detailCopyId === undefined ? { kind: 'browse' } : { kind: 'detail', copyId: detailCopyId, scroll: 0 },
  }
}

/** Shows a message in the last line. */
export function note(state: ScreenState, text: string): ScreenState {
  return { ...state, message: { text, isError: false } }
}

/** Applies one key of a line editor to the text. */
export function edit(text: string, key: KeyPress): string {
  if (key.name === 'backspace') return [...text].slice(0, -1).join('')
  if (key.name === 'ctrl-u') return ''
  return key.name === 'text' ? text + key.text : text
}
