import { type Line, span } from './text/styled-line.js'

const KEYS: readonly (readonly [string, string])[] = [
  ['up down, k j', 'move the cursor'],
  ['PgUp PgDn', 'move by a page (also Space)'],
  ['Home End, g G', 'first row, last row'],
  ['Tab, 1 to 6', 'copies, leases, transfers, events, nodes, waits'],
  ['/', 'filter every list by words; Esc clears it'],
  ['s  S', 'sort the list by the next column; the other way round'],
  ['Enter', 'node, its copies, a copy, its leases; Esc goes back'],
  ['l  u', 'lock, unlock the copy: a locked copy is never evicted'],
  ['e', 'evict the copy, after a question'],
  ['x', 'end the lease or the staging, after a question'],
  ['p', 'prepare a dataset on this node'],
  [':', 'commands: :waits, :node gpu-01, :sort size, :help …'],
  ['r', 'read the record now'],
  ['mouse', 'click: row, again: into it; heading: sort; wheel: move'],
  ['q, Ctrl-C', 'quit;  Ctrl-Z  suspend'],
]

const NOTES = [
  'SPACE is the disk: of copies, of others, free; its numbers are the policy’s.',
  'KEPT BY is what keeps a copy from being evicted: leases of tasks, a lock, its',
  'stager, or having no remote source. "-": idle, it may go when room is needed.',
]

/** What the keys do. */
export function drawHelp(): readonly Line[] {
  return [
    [span('Keys', { isBold: true })],
    ...KEYS.map(([keys, meaning]): Line => [span(`  ${keys.padEnd(16)}`, { color: 'cyan' }), span(meaning)]),
    [],
    ...NOTES.map((text): Line => [span(text, { isDim: true })]),
  ]
}
