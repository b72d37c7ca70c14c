import { type ListPosition, moveBy, placeList } from '../lists/list-position.js'
import {
  findTabOf,
  GROUPS,
  type ListName,
  type ListRows,
  type ScopeTarget,
  TABS,
} from '../lists/list-rows.js'
import { FIRST_POSITIONS, findList, type ScreenState } from '../screen-state.js'
import type { KeyOutcome, KeyPress, KeyTarget } from './key-press.js'

/** Moves the cursor of the list by `by` rows. */
export function moveCursor(state: ScreenState, by: number, { rows, height }: KeyTarget): ScreenState {
  const list = { keys: rows.keys, height }
  return withPosition(state, rows.list, moveBy(placeList(state.positions[rows.list], list), by, list))
}

function withPosition(state: ScreenState, list: ListName, position: ListPosition): ScreenState {
  return { ...state, positions: { ...state.positions, [list]: position } }
}

/** Sets a filter and moves every list to its top. */
export function withFilter(state: ScreenState, filter: string): ScreenState {
  return { ...state, filter, positions: FIRST_POSITIONS }
}

/** Moves by `by` tabs, wrapping around. */
export function showTab(state: ScreenState, by: number): ScreenState {
  return { ...state, tab: TABS[(TABS.indexOf(state.tab) + by + TABS.length) % TABS.length]! }
}

/** Shows a list by name: its tab, in groups or not. */
export function showList(state: ScreenState, list: ListName): ScreenState {
  const tab = findTabOf(list)
  return { ...state, tab, grouped: { ...state.grouped, [tab]: list !== tab } }
}

/** Gathers the rows of the tab in groups, or shows each again. */
export function changeGroup(state: ScreenState): ScreenState {
  const { tab } = state
  if (tab === 'events') return note(state, 'events stay in the order of time: / filters them')
  const isGrouped = !state.grouped[tab]
  const text = isGrouped ? `${tab} by ${GROUPS[tab].slice(0, -1)}; g shows each again` : `all ${tab}`
  return note({ ...state, grouped: { ...state.grouped, [tab]: isGrouped } }, text)
}

/** Enters a node, dataset, job or copy: the lists show only its items. */
export function enterScope(state: ScreenState, to: ScopeTarget): ScreenState {
  const scope = { ...to, from: findList(state), outer: state.scope }
  const inside = {
    ...withFilter(state, ''),
    scope,
    mode: { kind: 'browse' },
    detailCopyId: undefined,
  } as const
  return showList(inside, to.opens)
}

/** Leaves the last entered scope and returns to the list it was entered from. */
export function leaveScope(state: ScreenState): ScreenState {
  if (!state.scope) return state
  return showList({ ...state, scope: state.scope.outer }, state.scope.from)
}

/** Returns from the details of a copy to the list. */
export function leaveDetail(state: ScreenState): ScreenState {
  return { ...state, mode: { kind: 'browse' }, detailCopyId: undefined }
}

/** Sorts the list by the column; a second time reverses the order. */
export function sortByColumn(state: ScreenState, column: string, { list }: ListRows): ScreenState {
  const before = state.sorts[list]
  const isReversed = before?.column === column && !before.isReversed
  return { ...state, sorts: { ...state.sorts, [list]: { column, isReversed } } }
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

/** Shows in the last line why a key or a command does nothing. */
export function refuse(state: ScreenState, text: string): KeyOutcome {
  return { state: { ...state, message: { text, isError: true } } }
}

/** Opens the line of commands. */
export function askCommand(state: ScreenState): ScreenState {
  return { ...state, mode: { kind: 'command', text: '', back: 0 } }
}

/** Applies one key of a line editor to the text. */
export function edit(text: string, key: KeyPress): string {
  if (key.name === 'backspace') return [...text].slice(0, -1).join('')
  if (key.name === 'ctrl-u') return ''
  return key.name === 'text' ? text + key.text : text
}
