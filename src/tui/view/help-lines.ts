import { findList, type ScreenState } from './screen-state.js'
import type { Glyphs } from './text/glyphs.js'
import { type Line, span } from './text/styled-line.js'
import { wrapText } from './text/text-cells.js'

type Keys = readonly (readonly [string, string])[]

const MOVE: Keys = [
  ['up down, k j', 'move; PgUp PgDn, Space: by a page; Home End'],
  ['/', 'filter by words; -word: without it; Esc clears'],
  ['s  S', 'sort by the next column; reverse the order'],
]
const CHANGE_COPY: Keys = [
  ['l  u', 'lock with a reason; unlock (asks, and says whose lock it is)'],
  ['e  x', 'evict; stop a download (both ask)'],
]
const PREPARE: Keys = [['p', 'prepare a dataset on this node']]
const EVERYWHERE: Keys = [
  ['1 to 4, Tab', 'copies, leases, events, nodes'],
  ['!', 'everything that is wrong, with the command that helps'],
  [':', 'a command: Tab completes, up recalls earlier ones'],
  ['r  q', 'read the record now; quit (Ctrl-Z suspends)'],
  ['mouse', 'click: row, again: open; heading: sort; wheel: move'],
]

/** The keys of each list, and what it means. */
const VIEWS = {
  copies: {
    keys: [['Enter', 'open the copy'], ['g', 'gather by dataset'], ...MOVE, ...CHANGE_COPY, ...PREPARE],
    note: 'idle: nothing keeps the copy, so dsc may evict it when it needs room; "goes first" is the next of its node.',
  },
  datasets: {
    keys: [['Enter', 'its copies'], ['g', 'back to copies'], ...MOVE, ...PREPARE],
    note: '* in use',
  },
  leases: {
    keys: [
      ['Enter', 'open its copy'],
      ['g', 'gather by job'],
      ...MOVE,
      ['x', 'end the lease (asks)'],
      ...PREPARE,
    ],
    note: 'refused: a job that got no room; Enter shows what is on its node. waits: its copy is still downloading.',
  },
  jobs: { keys: [['Enter', 'its leases'], ['g', 'back to leases'], ...MOVE], note: '' },
  events: { keys: [['Enter', 'the copy, or all of its dataset'], ...MOVE], note: '' },
  nodes: {
    keys: [['Enter', 'the copies on it'], ['g', 'gather by share'], ...MOVE, ...PREPARE],
    note: 'SPACE is the disk: copies, files of others (dim), free. IDLE: copies that dsc may evict.',
  },
  shares: { keys: [['Enter', 'the copies on its node'], ['g', 'back to nodes'], ...MOVE], note: '' },
  copy: {
    keys: [
      ['Enter', 'its leases'],
      ['Esc', 'back'],
      ['up down, k j', 'scroll; PgUp PgDn by a page'],
      ...CHANGE_COPY,
      ...PREPARE,
    ],
    note: '',
  },
} as const satisfies Readonly<Record<string, { readonly keys: Keys; readonly note: string }>>

const SIGNS = [
  ['staging', 'under way', 'cyan'],
  ['used', 'in use', 'green'],
  ['locked', 'locked', 'magenta'],
  ['idle', 'idle', undefined],
  ['left', 'interrupted', 'yellow'],
  ['wrong', 'act now', 'red'],
] as const

const KEY_CELLS = 14

/** The keys of the view that one is in, then those of every view, in `width` cells. */
export function drawHelp(state: ScreenState, width: number, { signs }: Glyphs): readonly Line[] {
  const name = state.detailCopyId === undefined ? findList(state) : 'copy'
  const { keys, note } = VIEWS[name]
  return [
    [span(` Keys here: ${name}`, { isBold: true })],
    ...drawKeys(keys, width),
    [],
    [span(' Everywhere', { isBold: true })],
    ...drawKeys(EVERYWHERE, width),
    [],
    SIGNS.flatMap(([sign, meaning, color]) => [
      span(` ${signs[sign]}`, color ? { color } : { isDim: true }),
      span(` ${meaning} `, { isDim: true }),
    ]),
    ...(note === ''
      ? []
      : wrapText(note, width - 2).map((text): Line => [span(` ${text}`, { isDim: true })])),
  ]
}

function drawKeys(keys: Keys, width: number): readonly Line[] {
  return keys.flatMap(([key, meaning]) =>
    wrapText(meaning, width - KEY_CELLS - 2).map((text, at): Line => {
      return [span(`  ${(at === 0 ? key : '').padEnd(KEY_CELLS)}`, { color: 'cyan' }), span(text)]
    }),
  )
}
