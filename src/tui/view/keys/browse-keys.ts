import { placeList } from '../lists/list-position.js'
import { TABS } from '../lists/list-rows.js'
import { chooseNextSort, describeSort } from '../lists/sort-rows.js'
import type { ScreenState } from '../screen-state.js'
import { enterScope, leaveScope, moveCursor, note, showTab, withFilter } from './change-screen.js'
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
      if (rows.scopeAt) return enterRow(state, target)
      if (!target.copy) return { state: note(state, 'no copy to look into here') }
      return {
        state: {
          ...state,
          mode: { kind: 'detail', copyId: target.copy.copyId, scroll: 0 },
          detailCopyId: target.copy.copyId,
        },
      }
    case 'text':
      return browseText(state, key.text, target)
    default:
      return { state }
  }
}

/** Enters a node or dataset and shows its copies. */
function enterRow(state: ScreenState, { rows, height }: KeyTarget): KeyOutcome {
  const { index } = placeList(state.positions[rows.tab], { keys: rows.keys, height })
  const scope = rows.scopeAt?.(index)
  if (!scope) return { state: note(state, 'nothing to open here') }
  return { state: enterScope(state, scope, 'copies') }
}

/** Sorts by the next column, or reverses the current one. */
function changeSort(
  state: ScreenState,
  { rows }: KeyTarget,
  { isNext }: { readonly isNext: boolean },
): KeyOutcome {
  const { [rows.tab]: before, ...others } = state.sorts
  const reversed = before && { ...before, isReversed: !before.isReversed }
  const sort = isNext ? chooseNextSort(before, rows.sortable) : reversed
  if (!sort) return { state: note({ ...state, sorts: others }, `${rows.tab} as the record has them`) }
  const sorts = { ...others, [rows.tab]: sort }
  return { state: note({ ...state, sorts }, `${rows.tab} ${describeSort(sort)}`) }
}

function browseText(state: ScreenState, text: string, target: KeyTarget): KeyOutcome {
  const { rows, height } = target
  switch (text) {
    case 'k':
      return { state: moveCursor(state, -1, target) }
    case 'j':
      return { state: moveCursor(state, 1, target) }
    case 'g':
      return { state: moveCursor(state, -rows.keys.length, target) }
    case 'G':
      return { state: moveCursor(state, rows.keys.length, target) }
    case ' ':
      return { state: moveCursor(state, Math.max(1, height - 1), target) }
    case '/':
      return { state: { ...state, mode: { kind: 'filter', before: state.filter } } }
    case ':':
      return { state: { ...state, mode: { kind: 'command', text: '' } } }
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
