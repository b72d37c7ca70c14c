import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_THROUGHPUT } from '../../../cache/status/throughput.js'
import { EXAMPLE_SHARES, exampleStatus } from '../../../testing/example-status.js'
import { selectRows } from '../lists/select-rows.js'
import { findShownCopy, findShownLease } from '../screen.js'
import { type Effect, FIRST_SCREEN, type ScreenState } from '../screen-state.js'
import { handleKey } from './handle-key.js'
import type { KeyPress } from './key-press.js'

const STATUS = exampleStatus(60, { shares: EXAMPLE_SHARES })
const HEIGHT = 10

/** Presses keys one after the other; types single characters. */
function press(keys: readonly string[], start: ScreenState = FIRST_SCREEN, ownNode = 'gpu-02') {
  let state = start
  const effects: Effect[] = []
  for (const word of keys) {
    const key: KeyPress =
      word.length === 1 ? { name: 'text', text: word } : { name: word as KeyPress['name'], text: '' }
    const rows = selectRows(STATUS, state, NO_THROUGHPUT)
    const copy = findShownCopy({ snapshot: STATUS, state, rows }, HEIGHT)
    const lease = findShownLease({ state, rows }, HEIGHT)
    const whyNotCancel = () => (ownNode === 'gpu-01' ? undefined : 'it is staged elsewhere')
    const outcome = handleKey(state, key, { rows, height: HEIGHT, copy, lease, whyNotCancel, ownNode })
    state = outcome.state
    if (outcome.effect) effects.push(outcome.effect)
  }
  const rows = selectRows(STATUS, state, NO_THROUGHPUT)
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
  assert.equal(press(['shift-tab']).state.tab, 'shares')
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
  assert.equal(asked.state.mode.kind, 'confirm')
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

test('a locked copy is unlocked after a question that names whose lock it is', () => {
  const asked = press(['down', 'down', 'down', 'u'])
  assert.deepEqual(asked.effects, [])
  assert.match(
    asked.state.mode.kind === 'confirm' ? asked.state.mode.question : '',
    /^Remove \w+'s lock of dataset-0004 on gpu-02 \(".+"\)\?$/,
  )
  assert.deepEqual(press(['y'], asked.state).effects, [
    { kind: 'unlock', copyId: 'copy-3', dataset: 'dataset-0004' },
  ])
  assert.deepEqual(press(['n'], asked.state).effects, [])
  assert.match(press(['u']).state.message?.text ?? '', /not locked/)
})

test('a question asked inside a copy comes back to the copy', () => {
  const { state } = press(['down', 'enter', 'e', 'n'])
  assert.equal(state.mode.kind, 'detail')
  assert.equal(state.detailCopyId, 'copy-1')
  assert.equal(press(['escape'], state).state.mode.kind, 'browse')
})

test('inside a copy, a command waits for Enter, and its letters are no keys', () => {
  const typed = press(['down', 'down', 'down', 'enter', ':', ...'unlock'])
  assert.deepEqual(typed.effects, [])
  assert.deepEqual(typed.state.mode, { kind: 'command', text: 'unlock' })
  const entered = press(['enter', 'y'], typed.state)
  assert.deepEqual(entered.effects, [{ kind: 'unlock', copyId: 'copy-3', dataset: 'dataset-0004' }])
  assert.equal(entered.state.mode.kind, 'detail')
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

test('x on a lease asks and releases it; on one of a sender it says that it ends by itself', () => {
  const asked = press(['2', 'x'])
  assert.match(drawQuestion(asked.state), /Release dataset-0001 on gpu-01 from job-4700\?/)
  assert.deepEqual(asked.effects, [])
  assert.deepEqual(press(['n'], asked.state).effects, [])
  assert.deepEqual(press(['y'], asked.state).effects, [
    { kind: 'release', leaseId: 'lease-0-0', dataset: 'dataset-0001', task: 'job-4700' },
  ])
})

test('x on a staging asks and stops it, where that can be done from here, and else says why not', () => {
  const asked = press(['3', 'x'], FIRST_SCREEN, 'gpu-01')
  assert.match(drawQuestion(asked.state), /Stop staging webdata on gpu-01\?/)
  assert.deepEqual(press(['y'], asked.state).effects, [
    { kind: 'cancel', copyId: 'copy-webdata', dataset: 'webdata' },
  ])
  const refused = press(['3', 'x'], FIRST_SCREEN, 'gpu-02').state
  assert.deepEqual([refused.mode.kind, refused.message?.text], ['browse', 'it is staged elsewhere'])
})

test('x on a ready copy or nothing asks nothing', () => {
  assert.match(press(['x']).state.message?.text ?? '', /not being staged; x on a lease releases it/)
  assert.match(press(['5', 'x']).state.message?.text ?? '', /there is none here/)
})

test('Enter leads from a node to its copies, a copy, its leases, and Esc all the way back', () => {
  const copies = press(['5', 'down', 'enter'])
  assert.equal(copies.state.tab, 'copies')
  assert.deepEqual([copies.rows.keys.length, copies.rows.keys[0]], [30, 'copy-1'])
  const leases = press(['down', 'enter', 'enter'], copies.state)
  assert.equal(leases.state.tab, 'leases')
  assert.deepEqual(leases.rows.keys, ['lease-3-0', 'lease-3-1', 'lease-3-2', 'lease-3-3'])
  const back = press(['escape'], leases.state)
  assert.deepEqual([back.state.tab, back.rows.keys.length], ['copies', 30])
  const nodes = press(['escape'], back.state)
  assert.deepEqual([nodes.state.tab, nodes.state.scope], ['nodes', undefined])
})

test('s sorts each list by one column after the other, S the other way round', () => {
  const bySize = press(['s'])
  const byUse = press(['s', 's'])
  assert.equal(bySize.state.sorts.copies?.column, 'SIZE')
  assert.equal(byUse.state.sorts.copies?.column, 'USED')
  assert.deepEqual(press(['S'], bySize.state).rows.keys, press(['s', 'S']).rows.keys)
  assert.equal(press(['2', 's'], bySize.state).state.sorts.copies?.column, 'SIZE', 'lists have an order each')
  for (const tab of ['1', '2', '3', '4', '5', '6']) {
    const { sortable } = press([tab]).rows
    const around = press([tab, ...sortable.map(() => 's'), 's'])
    assert.deepEqual(
      around.rows.keys,
      press([tab]).rows.keys,
      `${tab}: as the record has it, after the last column`,
    )
  }
})

for (const { typed, holds } of [
  { typed: 'leases', holds: ({ state }: Pressed) => state.tab === 'leases' },
  { typed: 'wa', holds: ({ state }: Pressed) => state.tab === 'waits' },
  {
    typed: 'node gpu-02',
    holds: ({ rows }: Pressed) => rows.keys.length === 30 && rows.keys[0] === 'copy-1',
  },
  { typed: 'filter 0042', holds: ({ rows }: Pressed) => rows.keys.length === 1 },
  { typed: 'sort files', holds: ({ rows }: Pressed) => rows.keys[0] === 'copy-webdata' },
  {
    typed: 'sort colour',
    holds: ({ state }: Pressed) => /no column colour: size, used/.test(state.message?.text ?? ''),
  },
  { typed: 'prepare flowers', holds: ({ effects }: Pressed) => effects[0]?.kind === 'prepare' },
  { typed: 'q', holds: ({ effects }: Pressed) => effects[0]?.kind === 'quit' },
  {
    typed: 'nonsense',
    holds: ({ state }: Pressed) => /:nonsense is none of copies, leases/.test(state.message?.text ?? ''),
  },
  {
    typed: 'e',
    holds: ({ state }: Pressed) => /:e is several of events, evict/.test(state.message?.text ?? ''),
  },
  { typed: '', holds: ({ state }: Pressed) => state.mode.kind === 'browse' },
]) {
  test(`:${typed} does what it says`, () => assert.ok(holds(press([':', ...typed, 'enter']))))
}

type Pressed = ReturnType<typeof press>

function drawQuestion({ mode }: ScreenState): string {
  return mode.kind === 'confirm' ? mode.question : ''
}

test('Enter leads from a dataset to its copies, and Esc back', () => {
  const inside = press(['7', 'down', 'enter'])
  assert.equal(inside.state.tab, 'copies')
  assert.deepEqual(inside.rows.keys, ['copy-1'])
  assert.equal(press(['escape'], inside.state).state.tab, 'datasets')
})

test('Enter leads from a share to what is on its node', () => {
  const inside = press(['8', 'down', 'enter'])
  assert.equal(inside.state.scope?.node, 'gpu-01')
})

test(':report opens over a week or what is asked, scrolls, and closes', () => {
  const open = press([...':report 30d', 'enter', 'j', 'down']).state
  assert.deepEqual(open.mode, { kind: 'report', sinceMs: 30 * 86_400_000, scroll: 2 })
  assert.deepEqual(press(['q'], open).effects, [], 'q closes it and does not quit')
  assert.equal(press(['q'], open).state.mode.kind, 'browse')
  assert.equal(press([...':report', 'enter']).state.mode.kind, 'report')
  assert.match(press([...':report never', 'enter']).state.message?.text ?? '', /takes a duration like/)
})

test(':theme takes a name', () => {
  assert.equal(press([...':theme light', 'enter']).state.theme, 'light')
  assert.match(
    press([...':theme pink', 'enter']).state.message?.text ?? '',
    /terminal, dark, light, contrast/,
  )
})
