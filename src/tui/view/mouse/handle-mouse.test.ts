import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_THROUGHPUT } from '../../../cache/status/throughput.js'
import { NOW_MS } from '../../../testing/example-copies.js'
import { exampleStatus } from '../../../testing/example-status.js'
import { TABS } from '../lists/list-rows.js'
import { selectRows } from '../lists/select-rows.js'
import { drawScreen, findShownCopy, findShownLease } from '../screen.js'
import { planScreen } from '../screen-plan.js'
import { FIRST_SCREEN, type ScreenState } from '../screen-state.js'
import { UNICODE_GLYPHS } from '../text/glyphs.js'
import { lineText } from '../text/styled-line.js'
import { findSpot } from './find-spot.js'
import { handleMouse } from './handle-mouse.js'
import { type MouseReport, readMouseReports } from './mouse-report.js'

const STATUS = exampleStatus(60)

function show(state: ScreenState, columns: number, rows: number) {
  const input = {
    snapshot: STATUS,
    problem: undefined,
    state,
    rows: selectRows(STATUS, state, NO_THROUGHPUT),
    copyHistory: [],
    size: { columns, rows },
    context: { nowMs: NOW_MS, utcOffsetMinutes: 0, glyphs: UNICODE_GLYPHS, throughput: NO_THROUGHPUT },
  }
  return { input, lines: drawScreen(input).map(lineText) }
}

function react(state: ScreenState, report: MouseReport, columns = 120, rows = 24) {
  const { input } = show(state, columns, rows)
  const height = planScreen(state, input.size).listHeight
  const view = { snapshot: STATUS, state, rows: input.rows }
  return handleMouse(state, report, {
    snapshot: STATUS,
    rows: input.rows,
    height,
    copy: findShownCopy(view, height),
    lease: findShownLease(view, height),
    whyNotCancel: () => undefined,
    ownNode: 'gpu-01',
    spot: report.kind === 'click' ? findSpot(input, report) : { kind: 'nothing' },
  }).state
}

/** Clicks on the text: at the beginning of a row if possible, else where it first appears. */
function clickOn(text: string, state: ScreenState = FIRST_SCREEN, columns = 120, rows = 24): ScreenState {
  const { lines } = show(state, columns, rows)
  const first = lines.findIndex((line) => line.includes(text))
  const own = lines.findIndex((line) => line.indexOf(text) === 2)
  const row = own === -1 ? first : own
  assert.notEqual(row, -1, `${text} is on the screen`)
  return react(state, { kind: 'click', column: lines[row]!.indexOf(text), row }, columns, rows)
}

for (const [text, reports, rest = ''] of [
  ['\u001b[<0;10;5M', [{ kind: 'click', column: 9, row: 4 }]],
  ['\u001b[<16;300;90M', [{ kind: 'click', column: 299, row: 89 }]],
  [
    '\u001b[<64;1;1M\u001b[<65;1;1M',
    [
      { kind: 'wheel', direction: 'up' },
      { kind: 'wheel', direction: 'down' },
    ],
  ],
  ['\u001b[<0;10;5m\u001b[<2;10;5M\u001b[<35;10;5M', []],
  ['q\u001b[A[<0;10;5M', []],
  ['q\u001b[<0;1', [], '\u001b[<0;1'],
  ['\u001b', [], '\u001b'],
] as const) {
  test(`${JSON.stringify(text)} is read as ${JSON.stringify(reports)}`, () =>
    assert.deepEqual(readMouseReports(text), { reports, rest }))
}

for (const [columns, rows] of [
  [40, 10],
  [80, 24],
  [120, 16],
  [200, 60],
] as const) {
  test(`a click on a row chooses it, another looks inside, at ${columns}x${rows}`, () => {
    const chosen = clickOn('dataset-0007', FIRST_SCREEN, columns, rows)
    assert.equal(chosen.positions.copies.key, 'copy-6')
    assert.equal(clickOn('dataset-0007', chosen, columns, rows).detailCopyId, 'copy-6')
  })

  test(`every row of the list is found where it is drawn, at ${columns}x${rows}`, () => {
    const state = {
      ...FIRST_SCREEN,
      positions: { ...FIRST_SCREEN.positions, copies: { key: 'copy-40', index: 40, windowRow: 2 } },
    }
    const { input, lines } = show(state, columns, rows)
    for (const [row, line] of lines.entries()) {
      const spot = findSpot(input, { column: 3, row })
      if (spot.kind === 'row')
        assert.ok(line.slice(2).startsWith(input.rows.copyAt!(spot.index)!.dataset), line)
    }
  })
}

test('a click on a heading sorts by it, another the other way round', () => {
  const once = clickOn('SIZE  USED', FIRST_SCREEN)
  assert.deepEqual(once.sorts.copies, { column: 'SIZE', isReversed: false })
  assert.deepEqual(clickOn('SIZE  USED', once).sorts.copies, { column: 'SIZE', isReversed: true })
})

test('every column of every list can be sorted by', () => {
  for (const tab of TABS) {
    for (const isGrouped of [false, true]) {
      const state = { ...FIRST_SCREEN, tab, grouped: { [tab]: isGrouped } }
      const { columns, sortable, list } = selectRows(STATUS, state, NO_THROUGHPUT)
      for (const { title } of columns) assert.ok(sortable.includes(title), `${title} of ${list}`)
    }
  }
})

test('a click on the name of a tab shows it, one on the first line what is wrong', () => {
  assert.equal(clickOn('4 nodes').tab, 'nodes')
  assert.equal(clickOn('2', FIRST_SCREEN, 40, 10).tab, 'leases')
  assert.equal(clickOn('1 refused').mode.kind, 'troubles')
})

test('the wheel moves the cursor, and scrolls the details', () => {
  const wheel = { kind: 'wheel', direction: 'down' } as const
  assert.equal(react(FIRST_SCREEN, wheel).positions.copies.index, 3)
  const inside: ScreenState = {
    ...FIRST_SCREEN,
    detailCopyId: 'copy-3',
    mode: { kind: 'detail', copyId: 'copy-3', scroll: 0 },
  }
  assert.deepEqual(react(inside, wheel).mode, { kind: 'detail', copyId: 'copy-3', scroll: 3 })
})

test('a question is neither answered nor refused by the mouse', () => {
  const action = { kind: 'unlock', copyId: 'copy-0', dataset: 'dataset-0001' } as const
  const asked: ScreenState = {
    ...FIRST_SCREEN,
    mode: { kind: 'confirm', question: 'Sure?', action, refusal: 'no' },
  }
  assert.equal(clickOn('dataset-0007', asked), asked)
  assert.equal(react(asked, { kind: 'wheel', direction: 'up' }), asked)
})
