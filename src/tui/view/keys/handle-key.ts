import type { Action, ScreenState } from '../screen-state.js'
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
import { findStep, type KeyOutcome, type KeyPress, type KeyTarget, nameKey } from './key-press.js'
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
    case 'ask-lock-reason':
    case 'ask-dataset': {
      const { mode } = state
      if (key.name === 'escape') return { state: leaveQuestion(state) }
      if (key.name !== 'enter') return { state: { ...state, mode: { ...mode, text: edit(mode.text, key) } } }
      return { state: leaveQuestion(state), effect: answerQuestion(mode) }
    }
  }
}

function lookInside(state: ScreenState, key: KeyPress, target: KeyTarget): KeyOutcome {
  const step = findStep(key, target.height)
  if (step !== undefined) return scrollBy(state, step)
  const { copy } = target
  switch (key.name) {
    case 'enter': {
      if (!copy) return { state }
      const label = `${copy.dataset} on ${copy.node}`
      return { state: enterScope(state, { copyId: copy.copyId, label, opens: 'leases' }) }
    }
    case 'escape':
    case 'left':
    case 'backspace':
      return { state: leaveDetail(state) }
    default:
      return act(state, nameKey(key), target)
  }
}

function scrollBy(state: ScreenState, by: number): KeyOutcome {
  const { mode } = state
  if (!('scroll' in mode)) return { state }
  return { state: { ...state, mode: { ...mode, scroll: Math.max(0, mode.scroll + by) } } }
}

/** The action that an answered question asks for, if any. */
function answerQuestion(asked: Extract<ScreenState['mode'], { kind: `ask-${string}` }>): Action | undefined {
  const text = asked.text.trim()
  if (asked.kind === 'ask-dataset') return text === '' ? undefined : { kind: 'prepare', dataset: text }
  const { copyId, dataset } = asked
  return { kind: 'lock', copyId, dataset, reason: text || 'locked in dsc status' }
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
  if (key.text === ':') return { state: askCommand(state) }
  const step = findStep(key, height)
  return step === undefined ? { state: leaveQuestion(state) } : scrollBy(state, step)
}
