import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleStatus } from '../../../testing/example-status.js'
import { selectRows } from '../lists/select-rows.js'
import { findShownCopy } from '../screen.js'
import { type Effect, FIRST_SCREEN, type ScreenState } from '../screen-state.js'
import { handleKey } from './handle-key.js'
import type { KeyPress } from './key-press.js'

const STATUS = exampleStatus(60)
const HEIGHT = 10

/** Presses keys one after the other; a word of one character is typed. */
function press(keys: readonly string[], start: ScreenState = FIRST_SCREEN, ownNode = 'gpu-02') {
  let state = start
  const effects: Effect[] = []
  for (const word of keys) {
    const key: KeyPress =
      word.length === 1 ? { name: 'text', text: word } : { name: word as KeyPress['name'], text: '' }
    const rows = selectRows(STATUS, state)
    const copy = findShownCopy({ snapshot: STATUS, state, rows }, HEIGHT)
    const outcome = handleKey(state, key, { rows, height: HEIGHT, copy, ownNode })
    state = outcome.state
    if (outcome.effect) effects.push(outcome.effect)
  }
  const rows = selectRows(STATUS, state)
  return { state, effects, copy: findShownCopy({ snapshot: STATUS, state, rows }, HEIGHT), rows }
}

for (const { keys, dataset } of [
  { keys: ['down'], dataset: 'dataset-0002' },
  { keys: ['j', 'j', 'k'], dataset: 'dataset-0002' },
  { keys: ['page-down'], dataset: 'dataset-0010' },
  { keys: [' ', 'page-up'], dataset: 'dataset-0001' },
  { keys: ['end'], dataset: 'webdata' },
  { keys: ['G', 'g'], dataset: 'dataset-0001' },
  { keys: ['s'], dataset: 'dataset-0048' },
]) {
  test(`${keys.join(' ')} leads to ${dataset}`, () => assert.equal(press(keys).copy?.dataset, dataset))
}

test('Tab, Shift-Tab and digits choose the list', () => {
  assert.equal(press(['tab']).state.tab, 'leases')
  assert.equal(press(['shift-tab']).state.tab, 'nodes')
  assert.equal(press(['4']).state.tab, 'events')
  assert.equal(press(['9']).state.tab, 'copies')
})

test('typing a filter narrows at once, Enter keeps it, Esc takes it back', () => {
  const typed = press(['/', '0', '0', '4', '2'])
  assert.equal(typed.rows.keys.length, 1)
  assert.equal(press(['enter'], typed.state).state.filter, '0042')
  assert.equal(press(['escape'], typed.state).state.filter, '')
  assert.equal(press(['enter', 'escape'], typed.state).state.filter, '')
  assert.equal(press(['backspace'], typed.state).state.filter, '004')
})

test('letters typed into a filter or a question are no commands', () => {
  assert.deepEqual(press(['/', 'q', 'e', 'u']).effects, [])
  assert.deepEqual(press(['p', 'q', 'e', 'u']).effects, [])
})

test('a lease leads to its copy', () => {
  assert.equal(press(['2', 'down', 'enter']).state.detailCopyId, 'copy-3')
})

test('what lies on another node is not asked about: it can be evicted there only', () => {
  const { state, effects } = press(['down', 'e'], FIRST_SCREEN, 'gpu-01')
  assert.equal(state.mode.kind, 'browse')
  assert.match(state.message?.text ?? '', /dataset-0002 is on gpu-02, this is gpu-01/)
  assert.deepEqual(effects, [])
})

test('evicting asks first, and only y means yes', () => {
  const asked = press(['down', 'e'])
  assert.equal(asked.state.mode.kind, 'confirm-evict')
  assert.deepEqual(asked.effects, [])
  for (const no of ['n', 'enter', 'escape', ' ']) assert.deepEqual(press([no], asked.state).effects, [])
  assert.deepEqual(press(['y'], asked.state).effects, [
    { kind: 'evict', copyId: 'copy-1', dataset: 'dataset-0002' },
  ])
})

test('a copy that is kept is not even asked about', () => {
  const { state, effects } = press(['e'])
  assert.equal(state.mode.kind, 'browse')
  assert.match(state.message?.text ?? '', /dataset-0001 on gpu-01 stays: kept by leases/)
  assert.deepEqual(effects, [])
})

test('locking asks for the reason; an empty one gets a default; Esc locks nothing', () => {
  assert.deepEqual(press(['down', 'l', 'w', 'h', 'y', 'enter']).effects, [
    { kind: 'lock', copyId: 'copy-1', dataset: 'dataset-0002', reason: 'why' },
  ])
  assert.equal(press(['down', 'l', 'enter']).effects.length, 1)
  assert.deepEqual(press(['down', 'l', 'x', 'escape']).effects, [])
})

test('a locked copy is unlocked, an unlocked one is said to be so', () => {
  assert.deepEqual(press(['down', 'down', 'down', 'u']).effects, [
    { kind: 'unlock', copyId: 'copy-3', dataset: 'dataset-0004' },
  ])
  assert.match(press(['u']).state.message?.text ?? '', /not locked/)
})

test('a question asked inside a copy comes back to the copy', () => {
  const { state } = press(['down', 'enter', 'e', 'n'])
  assert.equal(state.mode.kind, 'detail')
  assert.equal(state.detailCopyId, 'copy-1')
  assert.equal(press(['escape'], state).state.mode.kind, 'browse')
})

test('Ctrl-C quits from every mode', () => {
  for (const keys of [[], ['/'], ['p'], ['down', 'e'], ['enter'], ['?']]) {
    assert.deepEqual(press([...keys, 'ctrl-c']).effects, [{ kind: 'quit' }])
  }
})

test('the outcome of an action is shown until the next key', () => {
  const state: ScreenState = { ...FIRST_SCREEN, message: { text: 'done', isError: false } }
  assert.equal(press(['down'], state).state.message, undefined)
})
