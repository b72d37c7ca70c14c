import { formatByteSize } from '../../model/byte-size.js'
import type { CopyUse } from '../../model/copy.js'
import { findKeepers } from '../../stage/plan/explain-copy.js'
import { SORT_ORDERS } from './copy-rows.js'
import { type ListPosition, moveBy, placeList, START } from './list-position.js'
import { type ListRows, TABS, type Tab } from './list-rows.js'
import type { Effect, ScreenState } from './screen-state.js'

/** A key: a name, or the text that it types. */
export interface KeyPress {
  readonly name:
    | 'up'
    | 'down'
    | 'left'
    | 'right'
    | 'page-up'
    | 'page-down'
    | 'home'
    | 'end'
    | 'enter'
    | 'escape'
    | 'tab'
    | 'shift-tab'
    | 'backspace'
    | 'ctrl-c'
    | 'ctrl-u'
    | 'ctrl-z'
    | 'text'
  readonly text: string
}

/** What a key acts on. */
export interface KeyTarget {
  readonly rows: ListRows
  /** Rows of the list that show. */
  readonly height: number
  /** The copy under the cursor, or the one whose details show. */
  readonly copy: CopyUse | undefined
}

export interface KeyOutcome {
  readonly state: ScreenState
  readonly effect?: Effect
}

/** Applies one key to the screen. */
export function handleKey(before: ScreenState, key: KeyPress, target: KeyTarget): KeyOutcome {
  const state: ScreenState = { ...before, message: undefined }
  if (key.name === 'ctrl-c') return { state, effect: { kind: 'quit' } }
  if (key.name === 'ctrl-z') return { state, effect: { kind: 'suspend' } }
  switch (state.mode.kind) {
    case 'browse':
      return browse(state, key, target)
    case 'detail':
      return lookInside(state, key, target)
    case 'filter':
      return typeFilter(state, key, target)
    case 'help':
      return readHelp(state, key)
    case 'confirm-evict': {
      const { copyId, dataset } = state.mode
      const after = leaveQuestion(state)
      if (key.name !== 'text' || key.text.toLowerCase() !== 'y') return { state: note(after, 'not evicted') }
      return { state: after, effect: { kind: 'evict', copyId, dataset } }
    }
    case 'ask-lock-reason': {
      const { copyId, dataset, text } = state.mode
      if (key.name === 'enter') {
        const reason = text.trim() || 'locked in dsc status'
        return { state: leaveQuestion(state), effect: { kind: 'lock', copyId, dataset, reason } }
      }
      if (key.name === 'escape') return { state: leaveQuestion(state) }
      return { state: { ...state, mode: { ...state.mode, text: edit(text, key) } } }
    }
    case 'ask-dataset': {
      const dataset = state.mode.text.trim()
      if (key.name === 'escape' || (key.name === 'enter' && dataset === ''))
        return { state: leaveQuestion(state) }
      if (key.name === 'enter') return { state: leaveQuestion(state), effect: { kind: 'prepare', dataset } }
      return { state: { ...state, mode: { ...state.mode, text: edit(state.mode.text, key) } } }
    }
  }
}

function browse(state: ScreenState, key: KeyPress, target: KeyTarget): KeyOutcome {
  const { rows, height } = target
  const go = (by: number): KeyOutcome => ({ state: moveCursor(state, by, rows, height) })
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
      return { state: moveCursor(state, -1, rows, height) }
    case 'j':
      return { state: moveCursor(state, 1, rows, height) }
    case 'g':
      return { state: moveCursor(state, -rows.keys.length, rows, height) }
    case 'G':
      return { state: moveCursor(state, rows.keys.length, rows, height) }
    case ' ':
      return { state: moveCursor(state, Math.max(1, height - 1), rows, height) }
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

function lookInside(state: ScreenState, key: KeyPress, target: KeyTarget): KeyOutcome {
  if (state.mode.kind !== 'detail') return { state }
  const scrollBy = (by: number): KeyOutcome => ({
    state:
      state.mode.kind === 'detail'
        ? { ...state, mode: { ...state.mode, scroll: Math.max(0, state.mode.scroll + by) } }
        : state,
  })
  switch (key.name) {
    case 'escape':
    case 'enter':
    case 'left':
    case 'backspace':
      return { state: { ...state, mode: { kind: 'browse' }, detailCopyId: undefined } }
    case 'up':
      return scrollBy(-1)
    case 'down':
      return scrollBy(1)
    case 'page-up':
      return scrollBy(-target.height)
    case 'page-down':
      return scrollBy(target.height)
    case 'home':
      return scrollBy(Number.NEGATIVE_INFINITY)
    case 'text':
      if (key.text === 'k') return scrollBy(-1)
      if (key.text === 'j') return scrollBy(1)
      return act(state, key.text, target)
    default:
      return { state }
  }
}

/** The keys that mean the same in the list and in the details. */
function act(state: ScreenState, text: string, { copy }: KeyTarget): KeyOutcome {
  switch (text) {
    case 'q':
      return { state, effect: { kind: 'quit' } }
    case '?':
    case 'h':
      return { state: { ...state, mode: { kind: 'help', scroll: 0 } } }
    case 'r':
      return { state, effect: { kind: 'refresh' } }
    case 'p':
      return { state: { ...state, mode: { kind: 'ask-dataset', text: '' } } }
    case 'l':
      if (!copy) return { state: note(state, 'no copy to lock here') }
      if (copy.lock) return { state: note(state, `${copy.dataset} is locked by ${copy.lock.by} already`) }
      return {
        state: {
          ...state,
          mode: { kind: 'ask-lock-reason', copyId: copy.copyId, dataset: copy.dataset, text: '' },
        },
      }
    case 'u':
      if (!copy?.lock) return { state: note(state, copy ? `${copy.dataset} is not locked` : 'no copy here') }
      return { state, effect: { kind: 'unlock', copyId: copy.copyId, dataset: copy.dataset } }
    case 'e': {
      if (!copy) return { state: note(state, 'no copy to evict here') }
      const keepers = findKeepers(copy)
      if (keepers.length > 0) {
        const text = `${copy.dataset} on ${copy.node} stays: kept by ${keepers.join(', ')}`
        return { state: { ...state, message: { text, isError: true } } }
      }
      const question = `Evict ${copy.dataset} from ${copy.node} (${formatByteSize(copy.chargedBytes)})? y/N`
      return {
        state: {
          ...state,
          mode: { kind: 'confirm-evict', copyId: copy.copyId, dataset: copy.dataset, question },
        },
      }
    }
    default:
      return { state }
  }
}

function typeFilter(state: ScreenState, key: KeyPress, { rows, height }: KeyTarget): KeyOutcome {
  if (state.mode.kind !== 'filter') return { state }
  switch (key.name) {
    case 'enter':
      return { state: { ...state, mode: { kind: 'browse' } } }
    case 'escape':
      return { state: withFilter({ ...state, mode: { kind: 'browse' } }, state.mode.before) }
    case 'up':
      return { state: moveCursor(state, -1, rows, height) }
    case 'down':
      return { state: moveCursor(state, 1, rows, height) }
    default: {
      const filter = edit(state.filter, key)
      return { state: filter === state.filter ? state : withFilter(state, filter) }
    }
  }
}

function readHelp(state: ScreenState, key: KeyPress): KeyOutcome {
  if (state.mode.kind !== 'help') return { state }
  const { scroll } = state.mode
  if (key.name === 'down' || key.name === 'page-down')
    return { state: { ...state, mode: { kind: 'help', scroll: scroll + 1 } } }
  if (key.name === 'up' || key.name === 'page-up')
    return { state: { ...state, mode: { kind: 'help', scroll: Math.max(0, scroll - 1) } } }
  if (key.name === 'text' && key.text === 'q') return { state: leaveQuestion(state) }
  return { state: leaveQuestion(state) }
}

function moveCursor(state: ScreenState, by: number, rows: ListRows, height: number): ScreenState {
  const window = placeList(state.positions[rows.tab], rows.keys, height)
  return withPosition(state, rows.tab, moveBy(window, by, rows.keys, height))
}

function withPosition(state: ScreenState, tab: Tab, position: ListPosition): ScreenState {
  return { ...state, positions: { ...state.positions, [tab]: position } }
}

/** A new filter starts at the top of every list. */
function withFilter(state: ScreenState, filter: string): ScreenState {
  return {
    ...state,
    filter,
    positions: { copies: START, leases: START, transfers: START, events: START, nodes: START },
  }
}

function showTab(state: ScreenState, by: number): ScreenState {
  return { ...state, tab: TABS[(TABS.indexOf(state.tab) + by + TABS.length) % TABS.length]! }
}

function leaveQuestion(state: ScreenState): ScreenState {
  const { detailCopyId } = state
  return {
    ...state,
    mode:
      detailCopyId === undefined ? { kind: 'browse' } : { kind: 'detail', copyId: detailCopyId, scroll: 0 },
  }
}

function note(state: ScreenState, text: string): ScreenState {
  return { ...state, message: { text, isError: false } }
}

function edit(text: string, key: KeyPress): string {
  if (key.name === 'backspace') return [...text].slice(0, -1).join('')
  if (key.name === 'ctrl-u') return ''
  return key.name === 'text' ? text + key.text : text
}
