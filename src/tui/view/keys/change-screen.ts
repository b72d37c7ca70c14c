import { type ListPosition, moveBy, placeList } from '../lists/list-position.js'
import { type ListRows, type ScopeTarget, TABS, type Tab } from '../lists/list-rows.js'
import { FIRST_POSITIONS, type ScreenState } from '../screen-state.js'
import type { KeyPress, KeyTarget } from './key-press.js'

/** The cursor of the list, `by` rows further. */
export function moveCursor(state: ScreenState, by: number, { rows, height }: KeyTarget): ScreenState {
  const list = { keys: rows.keys, height }
  return withPosition(state, rows.tab, moveBy(placeList(state.positions[rows.tab], list), by, list))
}

function withPosition(state: ScreenState, tab: Tab, position: ListPosition): ScreenState {
  return { ...state, positions: { ...state.positions, [tab]: position } }
}

/** A new filter starts at the top of every list. */
export function withFilter(state: ScreenState, filter: string): ScreenState {
  return { ...state, filter, positions: FIRST_POSITIONS }
}

/** The list `by` tabs further, round and round. */
export function showTab(state: ScreenState, by: number): ScreenState {
  return { ...state, tab: TABS[(TABS.indexOf(state.tab) + by + TABS.length) % TABS.length]! }
}

/** Into a node, a dataset or a copy: the lists show what belongs to it. */
export function enterScope(state: ScreenState, to: ScopeTarget, tab: Tab): ScreenState {
  const scope = { ...to, from: state.tab, outer: state.scope }
  return { ...withFilter(state, ''), tab, scope, mode: { kind: 'browse' }, detailCopyId: undefined }
}

/** Out of what was entered last, to the list that it was entered from. */
export function leaveScope(state: ScreenState): ScreenState {
  if (!state.scope) return state
  return { ...state, tab: state.scope.from, scope: state.scope.outer }
}

/** From the details of a copy back to the list. */
export function leaveDetail(state: ScreenState): ScreenState {
  return { ...state, mode: { kind: 'browse' }, detailCopyId: undefined }
}

/** Sorts the list by the column; once more: the other way round. */
export function sortByColumn(state: ScreenState, column: string, { tab }: ListRows): ScreenState {
  const before = state.sorts[tab]
  const isReversed = before?.column === column && !before.isReversed
  return { ...state, sorts: { ...state.sorts, [tab]: { column, isReversed } } }
}

/** Back from a question or the help to where it was asked. */
export function leaveQuestion(state: ScreenState): ScreenState {
  const { detailCopyId } = state
  return {
    ...state,
    mode:
      detailCopyId === undefined ? { kind: 'browse' } : { kind: 'detail', copyId: detailCopyId, scroll: 0 },
  }
}

/** Says something in the last line. */
export function note(state: ScreenState, text: string): ScreenState {
  return { ...state, message: { text, isError: false } }
}

/** The text after one key of a line editor. */
export function edit(text: string, key: KeyPress): string {
  if (key.name === 'backspace') return [...text].slice(0, -1).join('')
  if (key.name === 'ctrl-u') return ''
  return key.name === 'text' ? text + key.text : text
}
