import { leaveDetail, moveCursor, sortByColumn } from '../keys/change-screen.js'
import { handleKey } from '../keys/handle-key.js'
import type { KeyOutcome, KeyTarget } from '../keys/key-press.js'
import { placeList } from '../lists/list-position.js'
import type { ScreenState } from '../screen-state.js'
import type { Spot } from './find-spot.js'
import type { MouseReport } from './mouse-report.js'

/** Rows per notch of the wheel. */
const WHEEL_ROWS = 3
/** Modes that scroll. Only keys answer questions: a slip of the hand must not. */
const SCROLLED = ['browse', 'filter', 'detail', 'help', 'report', 'troubles']

/** Applies a mouse event to the screen; `spot` is the item under it. */
export function handleMouse(
  state: ScreenState,
  report: MouseReport,
  target: KeyTarget & { readonly spot: Spot },
): KeyOutcome {
  const { kind } = state.mode
  if (report.kind === 'wheel' && SCROLLED.includes(kind)) {
    const key = { name: report.direction, text: '' }
    return { state: Array.from({ length: WHEEL_ROWS }).reduce<ScreenState>(scroll, state) }
    function scroll(before: ScreenState): ScreenState {
      return handleKey(before, key, target).state
    }
  }
  if (report.kind !== 'click' || (kind !== 'browse' && kind !== 'detail')) return { state }
  return click({ ...state, message: undefined }, target)
}

function click(state: ScreenState, target: KeyTarget & { readonly spot: Spot }): KeyOutcome {
  const { spot, rows, height } = target
  switch (spot.kind) {
    case 'tab':
      return { state: { ...leaveDetail(state), tab: spot.tab } }
    case 'heading':
      return rows.sortable.includes(spot.title) ? { state: sortByColumn(state, spot.title, rows) } : { state }
    case 'row': {
      const { index } = placeList(state.positions[rows.list], { keys: rows.keys, height })
      const isUnderCursor = spot.index === index && state.mode.kind === 'browse'
      if (isUnderCursor) return handleKey(state, { name: 'enter', text: '' }, target)
      return { state: moveCursor(leaveDetail(state), spot.index - index, target) }
    }
    case 'trouble':
      return { state: { ...state, mode: { kind: 'troubles', scroll: 0 } } }
    case 'nothing':
      return { state }
  }
}
