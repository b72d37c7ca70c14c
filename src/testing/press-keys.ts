import { NO_THROUGHPUT } from '../cache/status/throughput.js'
import { handleKey } from '../tui/view/keys/handle-key.js'
import type { KeyPress } from '../tui/view/keys/key-press.js'
import { selectRows } from '../tui/view/lists/select-rows.js'
import { findShownCopy, findShownLease } from '../tui/view/screen.js'
import { type Effect, FIRST_SCREEN, type ScreenState } from '../tui/view/screen-state.js'
import { EXAMPLE_SHARES, exampleStatus } from './example-status.js'

const STATUS = exampleStatus(60, { shares: EXAMPLE_SHARES })
const HEIGHT = 10

/** The first screen with the cursor on a copy. */
export function on(copyId: string): ScreenState {
  const position = { key: copyId, index: 0, windowRow: 0 }
  return { ...FIRST_SCREEN, positions: { ...FIRST_SCREEN.positions, copies: position } }
}
/** Presses keys one after the other on an example of 60 copies; types single characters. */
export function press(keys: readonly string[], start: ScreenState = FIRST_SCREEN, ownNode = 'gpu-02') {
  let state = start
  const effects: Effect[] = []
  for (const word of keys) {
    const key: KeyPress =
      word.length === 1 ? { name: 'text', text: word } : { name: word as KeyPress['name'], text: '' }
    const rows = selectRows(STATUS, state, NO_THROUGHPUT)
    const copy = findShownCopy({ snapshot: STATUS, state, rows }, HEIGHT)
    const lease = findShownLease({ state, rows }, HEIGHT)
    const whyNotCancel = () => (ownNode === 'gpu-01' ? undefined : 'it is staged elsewhere')
    const outcome = handleKey(state, key, {
      snapshot: STATUS,
      rows,
      height: HEIGHT,
      copy,
      lease,
      whyNotCancel,
      ownNode,
    })
    state = outcome.state
    if (outcome.effect) effects.push(outcome.effect)
  }
  const rows = selectRows(STATUS, state, NO_THROUGHPUT)
  return { state, effects, copy: findShownCopy({ snapshot: STATUS, state, rows }, HEIGHT), rows }
}
