import assert from 'node:assert/strict'
import { test } from 'node:test'
import { press } from '../../../testing/press-keys.js'

for (const { typed, holds } of [
  { typed: 'leases', holds: ({ state }: Pressed) => state.tab === 'leases' },
  {
    typed: 'datas',
    holds: ({ state }: Pressed) => /may be datasets, dataset/.test(state.message?.text ?? ''),
  },
  { typed: 'datasets', holds: ({ rows }: Pressed) => rows.list === 'datasets' },
  {
    typed: 'dataset webdat',
    holds: ({ state }: Pressed) => state.message?.text === 'no copy of webdat. Did you mean webdata?',
  },
  {
    typed: 'node gpu-2',
    holds: ({ state }: Pressed) => /^no node gpu-2\. Did you mean gpu-0\d\?$/.test(state.message?.text ?? ''),
  },
  { typed: 'dataset webdata', holds: ({ rows }: Pressed) => rows.keys.join() === 'copy-webdata' },
  { typed: 'wrong', holds: ({ state }: Pressed) => state.mode.kind === 'troubles' },
  {
    typed: 'node gpu-02',
    holds: ({ rows }: Pressed) => rows.keys.length === 30 && rows.keys.includes('copy-1'),
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
    holds: ({ state }: Pressed) => /^unknown command :nonsense/.test(state.message?.text ?? ''),
  },
  {
    typed: 'e',
    holds: ({ state }: Pressed) => /^:e may be events, evict$/.test(state.message?.text ?? ''),
  },
  { typed: '', holds: ({ state }: Pressed) => state.mode.kind === 'browse' },
]) {
  test(`:${typed} does what it says`, () => assert.ok(holds(press([':', ...typed, 'enter']))))
}

type Pressed = ReturnType<typeof press>

test('a command is completed by Tab: its name, then the names it takes', () => {
  const type = (...keys: string[]) => {
    const { mode } = press([':', ...keys]).state
    return mode.kind === 'command' ? mode.text : mode.kind
  }
  assert.equal(type(...'rep', 'tab'), 'report')
  assert.equal(type(...'node ', 'tab'), 'node gpu-0', 'what all have in common')
  assert.equal(type(...'node ', 'tab', 'tab'), 'node gpu-01')
  assert.equal(type(...'sort la', 'tab'), 'sort last task')
  assert.equal(type(...'zzz', 'tab'), 'zzz')
})

test('up and down bring back earlier commands, in every view', () => {
  const two = press([':', ...'sort size', 'enter', ':', ...'theme dark', 'enter']).state
  const text = (keys: string[]) => {
    const { mode } = press([':', ...keys], two).state
    return mode.kind === 'command' ? mode.text : mode.kind
  }
  assert.equal(text(['up']), 'theme dark')
  assert.equal(text(['up', 'up', 'up']), 'sort size')
  assert.equal(text(['up', 'up', 'down']), 'theme dark')
  assert.equal(text(['up', 'down']), '')
  for (const view of [['?'], ['!'], ['enter'], [...':report', 'enter']])
    assert.equal(press([...view, ':', ...'leases', 'enter'], two).state.tab, 'leases', view.join(''))
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
