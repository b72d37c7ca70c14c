import { placeList } from '../lists/list-position.js'
import { TABS } from '../lists/list-rows.js'
import { chooseNextSort, describeSort } from '../lists/sort-rows.js'
import type { ScreenState } from '../screen-state.js'
import {
  changeGroup,
  enterScope,
  leaveScope,
  moveCursor,
  note,
  showTab,
  withFilter,
} from './change-screen.js'
import { act } from './copy-keys.js'
import { findStep, type KeyOutcome, type KeyPress, type KeyTarget, nameKey } from './key-press.js'

/** The keys of a list that change the screen, besides those that move its cursor. */
const LIST_KEYS: ReadonlyMap<string, (state: ScreenState, target: KeyTarget) => ScreenState> = new Map([
  ['tab', (state) => showTab(state, 1)],
  ['right', (state) => showTab(state, 1)],
  ['shift-tab', (state) => showTab(state, -1)],
  ['left', (state) => showTab(state, -1)],
  ['escape', (state) => (state.filter === '' ? leaveScope(state) : withFilter(state, ''))],
  ['backspace', leaveScope],
  ['enter', enterRow],
  ['end', (state, target) => moveCursor(state, target.rows.keys.length, target)],
  ['g', changeGroup],
  ['/', (state) => ({ ...state, mode: { kind: 'filter', before: state.filter } })],
  ['s', (state, target) => changeSort(state, target, { isNext: true })],
  ['S', (state, target) => changeSort(state, target, { isNext: false })],
  ...TABS.map((tab, index) => [`${index + 1}`, (state: ScreenState) => ({ ...state, tab })] as const),
])

/** The keys of a list. */
export function browse(state: ScreenState, key: KeyPress, target: KeyTarget): KeyOutcome {
  const step = findStep(key, Math.max(1, target.height - 1))
  if (step !== undefined) return { state: moveCursor(state, step, target) }
  const change = LIST_KEYS.get(nameKey(key))
  return change ? { state: change(state, target) } : act(state, nameKey(key), target)
}

/** Every row leads somewhere: to its copy, or to the items of its node, dataset or job. */
function enterRow(state: ScreenState, { rows, height, copy }: KeyTarget): ScreenState {
  if (copy) {
    const { copyId } = copy
    return { ...state, mode: { kind: 'detail', copyId, scroll: 0 }, detailCopyId: copyId }
  }
  const { index } = placeList(state.positions[rows.list], { keys: rows.keys, height })
  const scope = rows.scopeAt?.(index)
  if (!scope) return note(state, 'nothing to open here')
  const isThere = scope.opens === state.tab && scope.label === state.scope?.label
  if (isThere) return note(state, 'that copy is gone: these are the events of its dataset')
  return enterScope(state, scope)
}

/** Sorts by the next column, or reverses the current one. */
function changeSort(
  state: ScreenState,
  { rows }: KeyTarget,
  { isNext }: { readonly isNext: boolean },
): ScreenState {
  const { [rows.list]: before, ...others } = state.sorts
  const reversed = before && { ...before, isReversed: !before.isReversed }
  const sort = isNext ? chooseNextSort(before, rows.sortable) : reversed
  if (!sort) return note({ ...state, sorts: others }, `${rows.list} in their usual order`)
  const sorts = { ...others, [rows.list]: sort }
  return note({ ...state, sorts }, `${rows.list} ${describeSort(sort)}`)
}
