import { parseDuration } from '../../../model/duration.js'
import { findClosest } from '../../../model/find-closest.js'
import type { ListName } from '../lists/list-rows.js'
import type { ScreenState } from '../screen-state.js'
import { THEMES } from '../text/theme.js'
import {
  enterScope,
  leaveDetail,
  leaveScope,
  note,
  refuse,
  showList,
  sortByColumn,
  withFilter,
} from './change-screen.js'
import { act } from './copy-keys.js'
import { endShown } from './end-keys.js'
import type { KeyOutcome, KeyTarget } from './key-press.js'

/** How many commands `:` remembers. */
const MOST_COMMANDS = 50

interface ScreenCommand {
  readonly name: string
  /** The argument after the name. */
  readonly takes?: string
  readonly does: string
  readonly run: (state: ScreenState, words: string, target: KeyTarget) => KeyOutcome
}

const key =
  (text: string) =>
  (state: ScreenState, _words: string, target: KeyTarget): KeyOutcome =>
    act(state, text, target)

/** The lists, by name. */
export const LIST_COMMANDS: readonly {
  readonly name: ListName
  readonly takes?: string
  readonly does: string
}[] = [
  { name: 'copies', does: 'what lies where, and what keeps it' },
  { name: 'datasets', does: 'copies by dataset' },
  { name: 'leases', does: 'who uses which copy' },
  { name: 'jobs', does: 'leases by job' },
  { name: 'events', does: 'what happened, newest first' },
  { name: 'nodes', does: 'how full each node is' },
  { name: 'shares', does: 'nodes by guaranteed share' },
]

/** Commands after `:`, besides the names of lists. */
export const SCREEN_COMMANDS: readonly ScreenCommand[] = [
  {
    name: 'filter',
    takes: 'words',
    does: 'filter every list',
    run: (state, words) => ({ state: withFilter(state, words) }),
  },
  { name: 'node', takes: 'name', does: 'show only what is on this node', run: chooseNode },
  { name: 'dataset', takes: 'name', does: 'show only copies of this dataset', run: chooseDataset },
  {
    name: 'all',
    does: 'show everything again',
    run: (state) => ({ state: withFilter({ ...state, scope: undefined }, '') }),
  },
  { name: 'back', does: 'out of a node or copy', run: (state) => ({ state: leaveScope(state) }) },
  { name: 'sort', takes: 'column', does: 'sort this list; without a column as the record does', run: sortBy },
  {
    name: 'prepare',
    takes: 'dataset',
    does: 'prepare a dataset on this node',
    run: (state, words, target) =>
      words === '' ? act(state, 'p', target) : { state, effect: { kind: 'prepare', dataset: words } },
  },
  { name: 'lock', does: 'as l', run: key('l') },
  { name: 'unlock', does: 'as u', run: key('u') },
  { name: 'evict', does: 'as e', run: key('e') },
  {
    name: 'undo',
    does: 'take back your last eviction, unlock or release',
    run: (state) => ({ state, effect: { kind: 'undo' } }),
  },
  { name: 'release', does: 'as x on a lease', run: (state, _words, target) => endShown(state, target) },
  { name: 'cancel', does: 'as x on a staging', run: (state, _words, target) => endShown(state, target) },
  {
    name: 'report',
    takes: 'duration',
    does: 'what staging saved, who waited, what to change; 7d unless told',
    run: showReport,
  },
  { name: 'refresh', does: 'as r', run: key('r') },
  { name: 'theme', takes: 'name', does: 'colours: terminal, dark, light, contrast', run: chooseTheme },
  { name: 'mouse', does: 'leave the mouse to the terminal, or take it back', run: toggleMouse },
  { name: 'wrong', does: 'as !', run: key('!') },
  { name: 'help', does: 'as ?', run: key('?') },
  { name: 'quit', does: 'as q', run: key('q') },
]

/** Runs the command typed after `:`. An unambiguous prefix of a name is enough. */
export function runCommand(before: ScreenState, text: string, target: KeyTarget): KeyOutcome {
  const [word = '', ...rest] = text.trim().split(/\s+/)
  if (word === '') return { state: before }
  const state = { ...before, commands: [...before.commands, text.trim()].slice(-MOST_COMMANDS) }
  const names = [...LIST_COMMANDS, ...SCREEN_COMMANDS].map(({ name }) => name)
  const found = names.includes(word) ? [word] : names.filter((name) => name.startsWith(word))
  if (found.length === 0)
    return refuse(state, `unknown command :${word} (? lists the keys, : and Tab the commands)`)
  if (found.length > 1) return refuse(state, `:${word} may be ${found.join(', ')}`)
  const list = LIST_COMMANDS.find(({ name }) => name === found[0])
  if (list) return { state: showList(leaveDetail(state), list.name) }
  return SCREEN_COMMANDS.find(({ name }) => name === found[0])!.run(state, rest.join(' '), target)
}

function chooseNode(state: ScreenState, name: string, { snapshot }: KeyTarget): KeyOutcome {
  if (name === '') return refuse(state, ':node needs the name of a node')
  const known = snapshot?.nodes.map(({ node }) => node) ?? []
  if (!known.includes(name)) return refuse(state, `no node ${name}${suggest(name, known)}`)
  const opens = state.tab === 'nodes' ? 'copies' : state.tab
  return { state: enterScope(state, { node: name, label: name, opens }) }
}

function chooseDataset(state: ScreenState, name: string, { snapshot }: KeyTarget): KeyOutcome {
  if (name === '') return refuse(state, ':dataset needs the name of a dataset')
  const known = snapshot?.copies.map(({ dataset }) => dataset) ?? []
  if (!known.includes(name)) return refuse(state, `no copy of ${name}${suggest(name, known)}`)
  return { state: enterScope(state, { dataset: name, label: name, opens: 'copies' }) }
}

function suggest(name: string, known: readonly string[]): string {
  const near = findClosest(name, known)
  return near === undefined ? '' : `. Did you mean ${near}?`
}

function showReport(state: ScreenState, text: string): KeyOutcome {
  try {
    const sinceMs = parseDuration(text || '7d')
    return { state: { ...state, mode: { kind: 'report', sinceMs, scroll: 0 } } }
  } catch {
    return refuse(state, `:report takes a duration like 12h or 30d, found ${text}`)
  }
}

function chooseTheme(state: ScreenState, name: string): KeyOutcome {
  const theme = THEMES.find((known) => known === name)
  if (!theme) return refuse(state, `:theme is one of ${THEMES.join(', ')}`)
  return { state: { ...state, theme } }
}

/** Lets users select text without holding Shift. */
function toggleMouse(state: ScreenState): KeyOutcome {
  const isMouseOn = !state.isMouseOn
  const text = isMouseOn ? 'the mouse moves the cursor' : 'the mouse marks text; :mouse takes it back'
  return { state: note({ ...state, isMouseOn }, text) }
}

function sortBy(state: ScreenState, column: string, { rows }: KeyTarget): KeyOutcome {
  if (column === '') {
    const { [rows.list]: _, ...sorts } = state.sorts
    return { state: { ...state, sorts } }
  }
  const found = rows.sortable.find((title) => title.toLowerCase().startsWith(column.toLowerCase()))
  if (found === undefined)
    return refuse(state, `no column ${column}: ${rows.sortable.join(', ').toLowerCase()}`)
  return { state: sortByColumn(state, found, rows) }
}
