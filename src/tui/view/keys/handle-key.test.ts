import assert from 'node:assert/strict'
import { test } from 'node:test'
import { on, press } from '../../../testing/press-keys.js'
import { FIRST_SCREEN, type ScreenState } from '../screen-state.js'

/** Idle on gpu-02. */
const IDLE = on('copy-1')
/** Locked by somebody, and leased. */
const LOCKED = on('copy-3')

// Under way, in use, locked, idle: in this order.
for (const { keys, dataset } of [
  { keys: [], dataset: 'webdata' },
  { keys: ['down'], dataset: 'dataset-0001' },
  { keys: ['j', 'j', 'k'], dataset: 'dataset-0001' },
  { keys: ['page-down'], dataset: 'dataset-0028' },
  { keys: [' ', 'page-up'], dataset: 'webdata' },
  { keys: ['end'], dataset: 'dataset-0060' },
  { keys: ['end', 'home'], dataset: 'webdata' },
  { keys: ['s', 'home'], dataset: 'dataset-0048' },
]) {
  test(`${keys.join(' ')} leads to ${dataset}`, () => assert.equal(press(keys).copy?.dataset, dataset))
}

test('Tab, Shift-Tab and digits choose the list', () => {
  assert.equal(press(['tab']).state.tab, 'leases')
  assert.equal(press(['shift-tab']).state.tab, 'nodes')
  assert.equal(press(['3']).state.tab, 'events')
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
  assert.equal(press(['2', 'down', 'down', 'enter']).state.detailCopyId, 'copy-3')
})

test('what lies on another node is not asked about: it can be evicted there only', () => {
  const { state, effects } = press(['e'], IDLE, 'gpu-01')
  assert.equal(state.mode.kind, 'browse')
  assert.match(state.message?.text ?? '', /dataset-0002 is on gpu-02, this is gpu-01/)
  assert.deepEqual(effects, [])
})

test('evicting asks first, and only y means yes', () => {
  const asked = press(['e'], IDLE)
  assert.equal(asked.state.mode.kind, 'confirm')
  assert.deepEqual(asked.effects, [])
  for (const no of ['n', 'enter', 'escape', ' ']) assert.deepEqual(press([no], asked.state).effects, [])
  assert.deepEqual(press(['y'], asked.state).effects, [
    { kind: 'evict', copyId: 'copy-1', dataset: 'dataset-0002' },
  ])
})

test('a copy that is kept is not even asked about', () => {
  const { state, effects } = press(['e'], on('copy-0'))
  assert.equal(state.mode.kind, 'browse')
  assert.match(state.message?.text ?? '', /dataset-0001 on gpu-01 stays: kept by leases/)
  assert.deepEqual(effects, [])
})

test('locking asks for the reason; an empty one gets a default; Esc locks nothing', () => {
  assert.deepEqual(press(['l', 'w', 'h', 'y', 'enter'], IDLE).effects, [
    { kind: 'lock', copyId: 'copy-1', dataset: 'dataset-0002', reason: 'why' },
  ])
  assert.equal(press(['l', 'enter'], IDLE).effects.length, 1)
  assert.deepEqual(press(['l', 'x', 'escape'], IDLE).effects, [])
})

test('a locked copy is unlocked after a question that names whose lock it is', () => {
  const asked = press(['u'], LOCKED)
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
  const { state } = press(['enter', 'e', 'n'], IDLE)
  assert.equal(state.mode.kind, 'detail')
  assert.equal(state.detailCopyId, 'copy-1')
  assert.equal(press(['escape'], state).state.mode.kind, 'browse')
})

test('`:undo` asks for the last deed of the user back, also inside a copy', () => {
  for (const keys of [[], ['enter']])
    assert.deepEqual(press([...keys, ':', ...'undo', 'enter'], LOCKED).effects, [{ kind: 'undo' }])
})

test('inside a copy, a command waits for Enter, and its letters are no keys', () => {
  const typed = press(['enter', ':', ...'unlock'], LOCKED)
  assert.deepEqual(typed.effects, [])
  assert.deepEqual(typed.state.mode, { kind: 'command', text: 'unlock', back: 0 })
  const entered = press(['enter', 'y'], typed.state)
  assert.deepEqual(entered.effects, [{ kind: 'unlock', copyId: 'copy-3', dataset: 'dataset-0004' }])
  assert.equal(entered.state.mode.kind, 'detail')
})

test('Ctrl-C quits from every mode', () => {
  for (const keys of [[], ['/'], ['p'], ['l'], ['enter'], ['?'], ['!'], [':']]) {
    assert.deepEqual(press([...keys, 'ctrl-c']).effects, [{ kind: 'quit' }])
  }
})

test('the outcome of an action is shown until the next key', () => {
  const state: ScreenState = { ...FIRST_SCREEN, message: { text: 'done', isError: false } }
  assert.equal(press(['down'], state).state.message, undefined)
})

test('x on a lease asks and releases it; on one of a sender it says that it ends by itself', () => {
  const asked = press(['2', 'down', 'x'])
  assert.match(drawQuestion(asked.state), /Release dataset-0001 on gpu-01 from job-4700\?/)
  assert.deepEqual(asked.effects, [])
  assert.deepEqual(press(['n'], asked.state).effects, [])
  assert.deepEqual(press(['y'], asked.state).effects, [
    { kind: 'release', leaseId: 'lease-0-0', dataset: 'dataset-0001', task: 'job-4700' },
  ])
})

test('x on a staging asks and stops it, where that can be done from here, and else says why not', () => {
  const asked = press(['x'], FIRST_SCREEN, 'gpu-01')
  assert.match(drawQuestion(asked.state), /Stop staging webdata on gpu-01\?/)
  assert.deepEqual(press(['y'], asked.state).effects, [
    { kind: 'cancel', copyId: 'copy-webdata', dataset: 'webdata' },
  ])
  const refused = press(['x'], FIRST_SCREEN, 'gpu-02').state
  assert.deepEqual([refused.mode.kind, refused.message?.text], ['browse', 'it is staged elsewhere'])
})

test('x on a ready copy or nothing asks nothing', () => {
  assert.match(press(['x'], IDLE).state.message?.text ?? '', /not being staged; x on a lease releases it/)
  assert.match(press(['4', 'x']).state.message?.text ?? '', /there is none here/)
})

test('Enter leads from a node to its copies, a copy, its leases, and Esc all the way back', () => {
  const copies = press(['4', 'down', 'enter'])
  assert.equal(copies.state.tab, 'copies')
  assert.equal(copies.rows.keys.length, 30)
  const leases = press(['enter', 'enter'], { ...copies.state, positions: LOCKED.positions })
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
  for (const list of [['1'], ['1', 'g'], ['2'], ['2', 'g'], ['3'], ['4'], ['4', 'g']]) {
    const { sortable, keys } = press(list).rows
    const around = press([...list, ...sortable.map(() => 's'), 's'])
    assert.deepEqual(around.rows.keys, keys, `${list}: as at first, after the last column`)
  }
})

test('g gathers copies by dataset, leases by job, nodes by share, and shows each again', () => {
  for (const { keys, list } of [
    { keys: ['g'], list: 'datasets' },
    { keys: ['g', 'g'], list: 'copies' },
    { keys: ['2', 'g'], list: 'jobs' },
    { keys: ['4', 'g'], list: 'shares' },
    { keys: ['4', 'g', '1'], list: 'copies' },
  ])
    assert.equal(press(keys).rows.list, list, keys.join(' '))
  assert.match(press(['3', 'g']).state.message?.text ?? '', /events stay in the order of time/)
})

test('Enter leads somewhere from every row of every list, and Esc back', () => {
  for (const list of [['1'], ['1', 'g'], ['2'], ['2', 'g'], ['3'], ['4'], ['4', 'g']]) {
    const before = press(list)
    for (const [row, key] of before.rows.keys.entries()) {
      const position = { key, index: row, windowRow: 0 }
      const positions = { ...before.state.positions, [before.rows.list]: position }
      const inside = press(['enter'], { ...before.state, positions })
      const isInside = inside.state.detailCopyId !== undefined || inside.state.scope !== undefined
      assert.ok(isInside, `${list} ${key}: ${inside.state.message?.text}`)
      assert.ok(inside.copy !== undefined || inside.rows.keys.length > 0, `${list} ${key} leads to nothing`)
      assert.equal(press(['escape'], inside.state).rows.list, before.rows.list)
    }
  }
})

test('a refused job leads to what is on its node; the event of a copy that is gone to its dataset', () => {
  assert.deepEqual(press(['2', 'enter']).state.scope?.node, 'gpu-01')
  const events = press(['3', 'enter'])
  assert.deepEqual([events.state.tab, events.state.scope?.dataset], ['events', 'laion-huge'])
  assert.match(
    press(['enter'], events.state).state.message?.text ?? '',
    /these are the events of its dataset/,
  )
})

test('a filter takes words and -words, of names and of states', () => {
  assert.deepEqual(press(['/', ...'staging']).rows.keys, ['copy-webdata'])
  const count = (words: string) => press(['/', ...words]).rows.keys.length
  assert.ok(count('idle gpu-01') > 0)
  assert.equal(count('idle gpu-01') + count('idle -gpu-01'), count('idle'))
  assert.deepEqual(press(['2', '/', ...'refused']).rows.keys, ['refused job-4711 laion-huge gpu-01'])
})

function drawQuestion({ mode }: ScreenState): string {
  return mode.kind === 'confirm' ? mode.question : ''
}
