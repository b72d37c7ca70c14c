import { type Line, span } from './text/styled-line.js'
import { wrapText } from './text/text-cells.js'

const KEYS: readonly (readonly [string, string])[] = [
  ['up down, k j', 'move the cursor;  PgUp PgDn, Space  by a page'],
  ['Home End, g G', 'first row, last row'],
  ['Tab, 1 to 8', 'the lists: copies, leases, transfers, events, …'],
  ['/', 'filter every list by words; Esc clears it'],
  ['s  S', 'sort the list by the next column; the other way round'],
  ['Enter', 'node or dataset, its copies, a copy, its leases; Esc goes back'],
  ['l  u', 'lock the copy with a reason; unlock it, after a question'],
  ['e', 'evict the copy, after a question'],
  ['x', 'end the lease or the staging, after a question'],
  ['p', 'prepare a dataset on this node'],
  [':', 'commands: :node gpu-01, :sort size, :report 30d, :theme dark …'],
  ['r', 'read the record now'],
  ['mouse', 'click: row, again: into it; heading: sort; wheel: move'],
  ['q, Ctrl-C', 'quit;  Ctrl-Z  suspend'],
]

const NOTES = [
  'SPACE is the disk: of copies, of others, free; its numbers are the policy’s.',
  'KEPT BY is what keeps a copy from being evicted: leases of tasks, a lock, its stager, or having no remote source. "idle": nothing, dsc may evict it when it needs room.',
]

const KEY_CELLS = 16

/** The effects of the keys, in `width` cells. */
export function drawHelp(width: number): readonly Line[] {
  return [
    [span('Keys', { isBold: true })],
    ...KEYS.flatMap(([keys, meaning]) =>
      wrapText(meaning, width - KEY_CELLS - 2).map((text, at): Line => {
        return [span(`  ${(at === 0 ? keys : '').padEnd(KEY_CELLS)}`, { color: 'cyan' }), span(text)]
      }),
    ),
    [],
    ...NOTES.flatMap((note) => wrapText(note, width).map((text): Line => [span(text, { isDim: true })])),
  ]
}
