import type { ScreenState } from '../screen-state.js'
import { browse } from './browse-keys.js'
import {
  askCommand,
  edit,
  enterScope,
  leaveDetail,
  leaveQuestion,
  moveCursor,
  note,
  withFilter,
} from './change-screen.js'
import { takeCandidate } from './complete-command.js'
import { act } from './copy-keys.js'
import type { KeyOutcome, KeyPress, KeyTarget } from './key-press.js'
import { runCommand } from './run-command.js'

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
    case 'troubles':
    case 'report':
      return readText(state, key, target)
    case 'confirm': {
      const { action, refusal } = state.mode
      const after = leaveQuestion(state)
      if (key.name !== 'text' || key.text.toLowerCase() !== 'y') return { state: note(after, refusal) }
      return { state: after, effect: action }
    }
    case 'command':
      return typeCommand(state, key, target)
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

function lookInside(state: ScreenState, key: KeyPress, target: KeyTarget): KeyOutcome {
  if (state.mode.kind !== 'detail') return { state }
  const scrollBy = (by: number): KeyOutcome => ({
    state:
      state.mode.kind === 'detail'
        ? { ...state, mode: { ...state.mode, scroll: Math.max(0, state.mode.scroll + by) } }
        : state,
  })
  switch (key.name) {
    case 'enter':
      if (!target.copy) return { state }
      return {
        state: enterScope(state, {
          copyId: target.copy.copyId,
          label: `${target.copy.dataset} on ${target.copy.node}`,
          opens: 'leases',
        }),
      }
    case 'escape':
    case 'left':
    case 'backspace':
      return { state: leaveDetail(state) }
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

/** A line with history (up, down) and completion (Tab). Its letters are not the keys of the same name. */
function typeCommand(state: ScreenState, key: KeyPress, target: KeyTarget): KeyOutcome {
  if (state.mode.kind !== 'command') return { state }
  const { text, back } = state.mode
  const type = (typed: string, ago = back): KeyOutcome => ({
    state: { ...state, mode: { kind: 'command', text: typed, back: ago } },
  })
  const recall = (ago: number): KeyOutcome => {
    const at = Math.min(Math.max(0, ago), state.commands.length)
    return type(state.commands.at(state.commands.length - at) ?? '', at)
  }
  switch (key.name) {
    case 'escape':
      return { state: leaveQuestion(state) }
    case 'enter':
      return runCommand(leaveQuestion(state), text, target)
    case 'tab':
      return type(takeCandidate(text, target))
    case 'up':
      return recall(back + 1)
    case 'down':
      return recall(back - 1)
    default:
      if (key.name === 'backspace' && text === '') return { state: leaveQuestion(state) }
      return type(edit(text, key))
  }
}

function typeFilter(state: ScreenState, key: KeyPress, target: KeyTarget): KeyOutcome {
  if (state.mode.kind !== 'filter') return { state }
  switch (key.name) {
    case 'enter':
      return { state: { ...state, mode: { kind: 'browse' } } }
    case 'escape':
      return { state: withFilter({ ...state, mode: { kind: 'browse' } }, state.mode.before) }
    case 'up':
      return { state: moveCursor(state, -1, target) }
    case 'down':
      return { state: moveCursor(state, 1, target) }
    default: {
      const filter = edit(state.filter, key)
      return { state: filter === state.filter ? state : withFilter(state, filter) }
    }
  }
}

/** Scrolls the help, the report or the list of troubles. Keys that do not scroll close it. */
function readText(state: ScreenState, key: KeyPress, { height }: KeyTarget): KeyOutcome {
  const { mode } = state
  if (mode.kind !== 'help' && mode.kind !== 'troubles' && mode.kind !== 'report') return { state }
  if (key.text === ':') return { state: askCommand(state) }
  const steps: Readonly<Partial<Record<string, number>>> = {
    up: -1,
    down: 1,
    'page-up': -height,
    'page-down': height,
    home: Number.NEGATIVE_INFINITY,
    k: -1,
    j: 1,
    ' ': height,
  }
  const by = steps[key.name === 'text' ? key.text : key.name]
  if (by === undefined) return { state: leaveQuestion(state) }
  return { state: { ...state, mode: { ...mode, scroll: Math.max(0, mode.scroll + by) } } }
}
