import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import { NO_THROUGHPUT, noteThroughput } from '../../cache/status/throughput.js'
import { traceDay } from '../../cache/status/trace-day.js'
import { NOW_MS } from '../../testing/example-copies.js'
import { EXAMPLE_SHARES, exampleDay, exampleStatus } from '../../testing/example-status.js'
import { act } from './keys/copy-keys.js'
import { drawList } from './lists/draw-list.js'
import { selectRows } from './lists/select-rows.js'
import { drawScreen } from './screen.js'
import type { ScreenInput } from './screen-input.js'
import { FIRST_SCREEN, type ScreenState } from './screen-state.js'
import { ASCII_GLYPHS, UNICODE_GLYPHS } from './text/glyphs.js'
import { lineText } from './text/styled-line.js'
import { cellWidth } from './text/text-cells.js'

const GIB = 1024 ** 3
const DETAIL: ScreenState = {
  ...FIRST_SCREEN,
  detailCopyId: 'copy-3',
  mode: { kind: 'detail', copyId: 'copy-3', scroll: 0 },
}

function draw(
  columns: number,
  rows: number,
  changes: Partial<ScreenInput> & { state?: ScreenState; snapshot?: StatusSnapshot | undefined } = {},
): readonly string[] {
  const snapshot = 'snapshot' in changes ? changes.snapshot : exampleStatus(60)
  const state = changes.state ?? FIRST_SCREEN
  const earlier = exampleStatus(60, { nowMs: NOW_MS - 4_000, writtenBytes: 7.5 * GIB })
  const throughput = noteThroughput(noteThroughput(NO_THROUGHPUT, earlier), exampleStatus(60))
  return drawScreen({
    problem: undefined,
    day: traceDay(exampleDay(), exampleStatus(60), NOW_MS),
    copyHistory: exampleStatus(60).events.filter((event) => event.copyId === 'copy-0'),
    context: { nowMs: NOW_MS, utcOffsetMinutes: 0, glyphs: UNICODE_GLYPHS, throughput },
    ...changes,
    snapshot,
    state,
    rows: selectRows(snapshot, state, throughput),
    size: { columns, rows },
  }).map(lineText)
}

/** Compares with src/tui/view/golden/<name>.txt; `UPDATE_GOLDEN=1` writes it, for review in the diff. */
function compareGolden(name: string, lines: readonly string[]): void {
  const file = new URL(`../../../src/tui/view/golden/${name}.txt`, import.meta.url)
  const text = `${lines.map((line) => line.trimEnd()).join('\n')}\n`
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, text)
  assert.equal(text, readFileSync(file, 'utf8'))
}

const SIZES = [
  { columns: 80, rows: 24 },
  { columns: 120, rows: 40 },
  { columns: 200, rows: 50 },
] as const

// Look at each as a picture before you keep it: scripts/docs/draw-terminal.mjs draws what a terminal shows.
for (const { columns, rows } of SIZES) {
  for (const [name, state] of Object.entries({
    copies: FIRST_SCREEN,
    leases: { ...FIRST_SCREEN, tab: 'leases' },
    events: { ...FIRST_SCREEN, tab: 'events' },
    nodes: { ...FIRST_SCREEN, tab: 'nodes' },
    inside: DETAIL,
  } satisfies Record<string, ScreenState>)) {
    test(`${name} at ${columns}x${rows}`, () => {
      compareGolden(`${name}-${columns}x${rows}`, draw(columns, rows, { state }))
    })
  }
}

for (const [name, state] of Object.entries({
  datasets: { ...FIRST_SCREEN, grouped: { copies: true } },
  jobs: { ...FIRST_SCREEN, tab: 'leases', grouped: { leases: true } },
  shares: { ...FIRST_SCREEN, tab: 'nodes', grouped: { nodes: true } },
  help: { ...FIRST_SCREEN, mode: { kind: 'help', scroll: 0 } },
  troubles: { ...FIRST_SCREEN, mode: { kind: 'troubles', scroll: 0 } },
  command: { ...FIRST_SCREEN, mode: { kind: 'command', text: 'node ', back: 0 } },
  staging: { ...DETAIL, detailCopyId: 'copy-webdata' },
} satisfies Record<string, ScreenState>)) {
  test(`${name} at 80x24`, () => {
    const snapshot = exampleStatus(60, { shares: EXAMPLE_SHARES })
    compareGolden(`${name}-80x24`, draw(80, 24, { snapshot, state }))
  })
}

test('a question keeps its y/N however long a reason is, and no reason moves the cursor', () => {
  const locked = exampleStatus(60).copies.find(({ lock }) => lock)!
  for (const reason of ['for the paper, '.repeat(20), 'a\u001b[2Jb\u202ec']) {
    const copy = { ...locked, lock: { ...locked.lock!, reason } }
    const rows = selectRows(exampleStatus(60), FIRST_SCREEN, NO_THROUGHPUT)
    const target = {
      snapshot: exampleStatus(60),
      rows,
      height: 1,
      copy,
      lease: undefined,
      ownNode: copy.node,
      whyNotCancel: () => undefined,
    }
    const { state } = act(FIRST_SCREEN, 'u', target)
    const last = draw(80, 24, { state }).at(-1)!
    assert.match(last, /^ Remove \w+'s lock of .*y\/N *$/)
    assert.match(last, /^[^\p{Cc}\u202e]*$/u)
  }
})

/** Leases of processes with the default task names. */
function withProcesses(status: StatusSnapshot): StatusSnapshot {
  const leases = status.leases.map((lease, at) => {
    const [host, pid] = ['gpu-login-01', 4711 + at]
    const boot = { startTicks: '1', bootId: 'b', pidNamespace: 'n' }
    const holder = { kind: 'process', machine: 'm', host, pid, ...boot } as const
    return { ...lease, task: `researcher@${host}:${pid}`, holder, expiresAtMs: null }
  })
  return { ...status, leases }
}

test('which process of which host holds which copy since when is told in 80 columns', () => {
  const snapshot = withProcesses(exampleStatus(60))
  const lines = draw(80, 24, { snapshot, state: { ...FIRST_SCREEN, tab: 'leases' } })
  const row = lines.find((line) => line.includes('researcher@'))!
  assert.match(row, /researcher@gpu-logi\S* +dataset-0001 +gpu-01 +.*1h .* gpu-login-01:4711/)
})

for (const tab of ['copies', 'leases'] as const) {
  test(`the ${tab} at 40x10`, () => {
    const snapshot = withProcesses(exampleStatus(1000))
    compareGolden(`${tab}-40x10`, draw(40, 10, { snapshot, state: { ...FIRST_SCREEN, tab } }))
  })
}

test('the report is drawn to the width of the screen, and its names cannot move the cursor', () => {
  const state: ScreenState = { ...FIRST_SCREEN, mode: { kind: 'report', sinceMs: 1, scroll: 1 } }
  const report = (columns: number) => ['first', `${columns} cells`, 'job \x1b[2J']
  const lines = draw(80, 5, { state, report })
  assert.match(lines.join('\n'), /^ 78 cells +\n job \?\[2J/m)
  assert.match(draw(80, 24, { state }).join('\n'), /Reading the history/)
})

test('whoever reads a copy while it comes is named inside it', () => {
  const status = exampleStatus(3)
  const readers = [{ name: 'train-7', ordered: 40, waits: 3, waitsFor: ['a.tar', 'b.tar'] }]
  const snapshot = { ...status, transfers: status.transfers.map((transfer) => ({ ...transfer, readers })) }
  const state: ScreenState = { ...DETAIL, detailCopyId: 'copy-webdata' }
  assert.match(
    draw(80, 40, { snapshot, state }).join('\n'),
    /read by +train-7: waits for a\.tar, b\.tar and 1 more, 40 ordered ahead/,
  )
})

test('progress and the time left survive 40 columns', () => {
  assert.match(draw(40, 16).find((line) => line.startsWith('▶'))!, /^▶ webdata .*40% +1m/)
})

test('the bar under the cursor is not inverse, or its ends would swap', () => {
  const snapshot = exampleStatus(3)
  const rows = selectRows(snapshot, FIRST_SCREEN, NO_THROUGHPUT)
  const context = { nowMs: NOW_MS, utcOffsetMinutes: 0, glyphs: UNICODE_GLYPHS, throughput: NO_THROUGHPUT }
  const line = drawList(rows, { offset: 0, height: 1, cursor: 0, width: 80 }, context)[1]!
  const chosen = (pattern: RegExp) =>
    line.filter(({ text }) => pattern.test(text)).map((part) => part.isChosen)
  assert.deepEqual([chosen(/[█░]/), chosen(/webdata/)], [[false, false], [true]])
})

test('a download without a byte for long says so in its row', () => {
  const at = (seconds: number) => exampleStatus(3, { nowMs: NOW_MS + seconds * 1000, writtenBytes: 8 * GIB })
  const throughput = [0, 5, 13].reduce(
    (before, seconds) => noteThroughput(before, at(seconds)),
    NO_THROUGHPUT,
  )
  const context = { nowMs: NOW_MS, utcOffsetMinutes: 0, glyphs: UNICODE_GLYPHS, throughput }
  assert.match(draw(80, 24, { snapshot: at(13), context }).join('\n'), /webdata .*40% stalled/)
})

test('the idle copies that go first and last are marked, on each node', () => {
  const text = draw(120, 99).join('\n')
  for (const node of ['gpu-01', 'gpu-02'])
    for (const turn of ['first', 'last'])
      assert.equal(
        text.match(new RegExp(`${node}  ○ idle, goes ${turn}`, 'g'))?.length,
        1,
        `${turn} of ${node}`,
      )
})

test('the bar of a disk shows copies in eighths, then what others take of it', () => {
  const line = draw(120, 24, { state: { ...FIRST_SCREEN, tab: 'nodes' } }).find((row) => row.includes('▶'))!
  const [, own, others, free] = /(█+[▉▊▋▌▍▎▏]?)(▒+)(░+) 321\/800 GiB/.exec(line) ?? []
  const cells = own!.length + others!.length + free!.length
  assert.ok(Math.abs(own!.length / cells - 0.32) < 0.1, line)
  assert.ok(Math.abs((own!.length + others!.length) / cells - 0.82) < 0.1, line)
})

test('the help is that of the view one is in', () => {
  const help = (state: ScreenState) =>
    draw(80, 24, { state: { ...state, mode: { kind: 'help', scroll: 0 } } }).join('\n')
  assert.match(help(FIRST_SCREEN), /Keys here: copies[\s\S]*gather by dataset/)
  assert.match(help({ ...FIRST_SCREEN, tab: 'nodes' }), /Keys here: nodes[\s\S]*the copies on it/)
  assert.match(help(DETAIL), /Keys here: copy[\s\S]*its leases/)
})

test('a copy that was opened inside a node says the way back', () => {
  const scope = { node: 'gpu-02', label: 'gpu-02', opens: 'copies', from: 'nodes', outer: undefined } as const
  assert.match(draw(80, 24, { state: { ...DETAIL, scope } })[1]!, /nodes › gpu-02 › dataset-0004 +Esc back/)
})

test('a terminal without UTF-8 gets ASCII only', () => {
  const context = { nowMs: NOW_MS, utcOffsetMinutes: 0, glyphs: ASCII_GLYPHS, throughput: NO_THROUGHPUT }
  for (const line of draw(80, 24, { context })) assert.match(line, /^[\x20-\x7e]*$/)
})

test('every line is exactly as wide as the terminal, and there are exactly as many as it has rows', () => {
  for (const [columns, rows] of [
    [1, 1],
    [10, 3],
    [40, 10],
    [79, 15],
    [80, 24],
    [81, 33],
    [149, 50],
    [150, 50],
    [300, 100],
  ] as const) {
    for (const state of [FIRST_SCREEN, DETAIL, { ...FIRST_SCREEN, tab: 'events' as const, filter: 'job' }]) {
      const lines = draw(columns, rows, { state })
      assert.equal(lines.length, rows)
      for (const line of lines) assert.equal(cellWidth(line), columns, `${columns}x${rows}: ${line}`)
    }
  }
})

test('the text of a task cannot move the cursor or break the columns', () => {
  const status = exampleStatus(3)
  const [first, ...others] = status.copies
  const hostile = { ...first!, lastTask: '\x1b[2J\r\n\u202eevil 日本語 e\u0301' }
  const lines = draw(120, 24, { snapshot: { ...status, copies: [hostile, ...others] } })
  for (const line of lines) {
    assert.equal(cellWidth(line), 120)
    assert.doesNotMatch(line, /\p{Cc}|\u202e/u)
  }
})

test('the cursor is in sight at both ends of the list, at every size', () => {
  for (const rows of [6, 12, 16, 24, 32, 60]) {
    for (const columns of [80, 200]) {
      const bottom = { key: 'copy-58', index: 60, windowRow: rows }
      const state = { ...FIRST_SCREEN, positions: { ...FIRST_SCREEN.positions, copies: bottom } }
      assert.match(draw(columns, rows, { state }).join('\n'), /▶ dataset-0059/, `${columns}x${rows}`)
      assert.match(draw(columns, rows).join('\n'), /▶ webdata/, `${columns}x${rows}`)
    }
  }
})

test('a long outcome of an action is shown whole, over the end of the list', () => {
  const text = `${'nothing was evicted because '.repeat(6)}the end`
  const state = { ...FIRST_SCREEN, message: { text, isError: true } }
  const lines = draw(80, 24, { state })
  assert.equal(lines.length, 24)
  assert.match(lines.at(-1)!, /the end/)
})

test('a record that cannot be read is said in the title, above what was known last', () => {
  const lines = draw(80, 24, { problem: { message: 'disk I/O error', sinceMs: NOW_MS - 5_000 } })
  assert.match(lines[0]!, /unreachable for 5s, retrying: disk I\/O error/)
  assert.match(lines.join('\n'), /dataset-0001/)
})

test('before the first reading the screen says so instead of showing an empty cache', () => {
  const lines = draw(80, 24, { snapshot: undefined })
  assert.match(lines[0]!, /reading the record/)
  assert.doesNotMatch(lines.join('\n'), /No copies/)
})

test('a copy that went away while it is looked into is said to be gone', () => {
  const state: ScreenState = { ...DETAIL, detailCopyId: 'copy-gone' }
  assert.match(draw(80, 24, { state }).join('\n'), /This copy is gone/)
})
