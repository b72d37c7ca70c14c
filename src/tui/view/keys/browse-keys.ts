import { SORT_ORDERS } from '../lists/copy-rows.js'
import { TABS } from '../lists/list-rows.js'
import type { ScreenState } from '../screen-state.js'
import { moveCursor, note, showTab, withFilter } from './change-screen.js'
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
      return { state: state.filter === '' ? state : withFilter(state, '') }
    case 'enter':
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
    case 's': {
      const sort = SORT_ORDERS[(SORT_ORDERS.indexOf(state.sort) + 1) % SORT_ORDERS.length]!
      return { state: note({ ...state, tab: 'copies', sort }, `copies by ${sort}`) }
    }
    default: {
      const tab = TABS[Number(text) - 1]
      if (tab) return { state: { ...state, tab } }
      return act(state, text, target)
    }
  }
}
