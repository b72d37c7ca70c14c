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
import type { KeyOutcome, KeyPress, KeyTarget } from './key-press.js'

/** The keys of a list. */
export function browse(state: ScreenState, key: KeyPress, target: KeyTarget): KeyOutcome {
  const { rows, height } = target
  const go = (by: number): KeyOutcome => ({ state: moveCursor(state, by, target) })
  switch (key.name) {
    case 'up':
      return go(-1)
    case 'down':
      return go(1)
    case 'page-up':
      return go(-Math.max(1, height - 1))
    case 'page-down':
      return go(Math.max(1, height - 1))
    case 'home':
      return go(-rows.keys.length)
    case 'end':
      return go(rows.keys.length)
    case 'tab':
    case 'right':
      return { state: showTab(state, 1) }
    case 'shift-tab':
    case 'left':
      return { state: showTab(state, -1) }
    case 'escape':
      return { state: state.filter === '' ? leaveScope(state) : withFilter(state, '') }
    case 'backspace':
      return { state: leaveScope(state) }
    case 'enter':
      return enterRow(state, target)
    case 'text':
      return browseText(state, key.text, target)
    default:
      return { state }
  }
}

/** Every row leads somewhere: to its copy, or to the items of its node, dataset or job. */
function enterRow(state: ScreenState, { rows, height, copy }: KeyTarget): KeyOutcome {
  if (copy) {
    const { copyId } = copy
    return { state: { ...state, mode: { kind: 'detail', copyId, scroll: 0 }, detailCopyId: copyId } }
  }
  const { index } = placeList(state.positions[rows.list], { keys: rows.keys, height })
  const scope = rows.scopeAt?.(index)
  if (!scope) return { state: note(state, 'nothing to open here') }
  const isThere = scope.opens === state.tab && scope.label === state.scope?.label
  if (isThere) return { state: note(state, 'that copy is gone: these are the events of its dataset') }
  return { state: enterScope(state, scope) }
}

/** Sorts by the next column, or reverses the current one. */
function changeSort(
  state: ScreenState,
  { rows }: KeyTarget,
  { isNext }: { readonly isNext: boolean },
): KeyOutcome {
  const { [rows.list]: before, ...others } = state.sorts
  const reversed = before && { ...before, isReversed: !before.isReversed }
  const sort = isNext ? chooseNextSort(before, rows.sortable) : reversed
  if (!sort) return { state: note({ ...state, sorts: others }, `${rows.list} in their usual order`) }
  const sorts = { ...others, [rows.list]: sort }
  return { state: note({ ...state, sorts }, `${rows.list} ${describeSort(sort)}`) }
}

function browseText(state: ScreenState, text: string, target: KeyTarget): KeyOutcome {
  const { height } = target
  switch (text) {
    case 'k':
      return { state: moveCursor(state, -1, target) }
    case 'j':
      return { state: moveCursor(state, 1, target) }
    case 'g':
      return { state: changeGroup(state) }
    case ' ':
      return { state: moveCursor(state, Math.max(1, height - 1), target) }
    case '/':
      return { state: { ...state, mode: { kind: 'filter', before: state.filter } } }
    case 's':
    case 'S':
      return changeSort(state, target, { isNext: text === 's' })
    default: {
      const tab = TABS[Number(text) - 1]
      if (tab) return { state: { ...state, tab } }
      return act(state, text, target)
    }
  }
}
