import assert from 'node:assert/strict'
import { test } from 'node:test'
import { estimateLeftMs, findRate, noteProgress } from '../../../cache/status/transfer-rates.js'
import { NOW_MS } from '../../../testing/example-copies.js'
import { exampleStatus } from '../../../testing/example-status.js'
import { layoutColumns } from './column-layout.js'
import { formatMoment, formatPercent, formatShare, formatSpan } from './format-cells.js'
import { ASCII_GLYPHS, drawBar, UNICODE_GLYPHS } from './glyphs.js'
import { cellWidth, fitText, wrapText } from './text-cells.js'

const GIB = 1024 ** 3

for (const { text, width, align, expected } of [
  { text: 'abc', width: 5, align: 'left', expected: 'abc  ' },
  { text: 'abc', width: 5, align: 'right', expected: '  abc' },
  { text: 'abcdef', width: 4, align: 'left', expected: 'abc…' },
  { text: 'abcdef', width: 1, align: 'left', expected: '…' },
  { text: '日本語', width: 5, align: 'left', expected: '日本…' },
  { text: '日本語', width: 4, align: 'left', expected: '日… ' },
  { text: 'e\u0301', width: 2, align: 'left', expected: 'e\u0301 ' },
  { text: '👩‍🚀👍🏽x', width: 5, align: 'left', expected: '👩‍🚀👍🏽x' },
  { text: 'a\x1b[31mb\n', width: 10, align: 'left', expected: 'a?[31mb?  ' },
  { text: 'abc', width: 0, align: 'left', expected: '' },
] as const) {
  test(`fitText makes ${JSON.stringify(text)} ${width} cells wide`, () => {
    const fitted = fitText(text, width, { align })
    assert.equal(fitted, expected)
    assert.equal(cellWidth(fitted), width)
  })
}

test('text is wrapped at spaces, long words where they must', () => {
  assert.deepEqual(wrapText('one two three', 8), ['one two', 'three'])
  assert.deepEqual(wrapText('abcdefghij', 4), ['abcd', 'efgh', 'ij'])
})

for (const { ms, expected } of [
  { ms: -5, expected: '0s' },
  { ms: 59_999, expected: '59s' },
  { ms: 60_000, expected: '1m' },
  { ms: 47.9 * 3_600_000, expected: '47h' },
  { ms: 48 * 3_600_000, expected: '2d' },
  { ms: 999 * 86_400_000, expected: '999d' },
  { ms: 1100 * 86_400_000, expected: '3y' },
]) {
  test(`a span of ${ms} ms is ${expected}`, () => assert.equal(formatSpan(ms), expected))
}

test('a share says its unit once where it can', () => {
  assert.equal(formatShare(620 * GIB, 800 * GIB), '620/800 GiB')
  assert.equal(formatShare(900 * 1024 ** 2, 1.2 * 1024 * GIB), '900 MiB/1.2 TiB')
})

test('nothing is 100 % before it is all there', () => {
  assert.equal(formatPercent(999, 1000), '99%')
  assert.equal(formatPercent(1000, 1000), '100%')
  assert.equal(formatPercent(1, 0), '0%')
})

test('a moment of today has its seconds, an older one its date', () => {
  const noon = Date.UTC(2026, 10, 21, 12)
  assert.equal(formatMoment(noon - 60_000, noon, 60), '12:59:00')
  assert.equal(formatMoment(noon - 86_400_000, noon, 0), '11-20 12:00')
})

for (const [ratio, drawn, ascii] of [
  [0, '░░░░', '....'],
  [0.001, '▏░░░', '#...'],
  [0.4, '█▋░░', '##..'],
  [0.5, '██░░', '##..'],
  [0.999, '███▉', '###.'],
  [1.5, '████', '####'],
] as const) {
  test(`a bar of ${ratio} is drawn in eighths, in whole cells of ASCII, and full only at 1`, () => {
    assert.equal(drawBar(ratio, 4, UNICODE_GLYPHS), drawn)
    assert.equal(drawBar(ratio, 4, ASCII_GLYPHS), ascii)
  })
}

const SPECS = [
  { title: 'NAME', width: 20, minWidth: 10, grow: 1 },
  { title: 'SIZE', width: 8 },
  { title: 'TASK', width: 12, minWidth: 6, dropOrder: 2 },
  { title: 'NODE', width: 6, dropOrder: 1 },
] as const
for (const { width, expected } of [
  {
    width: 60,
    expected: [
      [0, 28],
      [1, 8],
      [2, 12],
      [3, 6],
    ],
  },
  {
    width: 52,
    expected: [
      [0, 20],
      [1, 8],
      [2, 12],
      [3, 6],
    ],
  },
  {
    width: 46,
    expected: [
      [0, 14],
      [1, 8],
      [2, 12],
      [3, 6],
    ],
  },
  {
    width: 35,
    expected: [
      [0, 17],
      [1, 8],
      [3, 6],
    ],
  },
  {
    width: 25,
    expected: [
      [0, 15],
      [1, 8],
    ],
  },
]) {
  test(`columns share ${width} cells: first the wide ones shrink, then the least needed go`, () => {
    assert.deepEqual(
      layoutColumns(SPECS, width, 2).map((column) => [column.index, column.width]),
      expected,
    )
  })
}

test('a rate is the mean of the last 15 s, and begins anew with the download', () => {
  const at = (seconds: number, gib: number) =>
    exampleStatus(0, { nowMs: NOW_MS + seconds * 1000, writtenBytes: gib * GIB })
  let history = noteProgress(new Map(), at(0, 1))
  assert.equal(findRate(history, 'copy-webdata'), undefined)
  history = noteProgress(history, at(2, 2))
  assert.equal(findRate(history, 'copy-webdata'), GIB / 2)
  history = noteProgress(noteProgress(new Map(), at(2, 2)), at(5, 2))
  assert.equal(findRate(history, 'copy-webdata'), undefined, 'too soon to call it stalled')
  history = noteProgress(history, at(17, 2))
  assert.equal(findRate(history, 'copy-webdata'), 0)
  history = noteProgress(history, at(18, 0))
  assert.equal(findRate(history, 'copy-webdata'), undefined)
})

test('the time left is unknown while nothing moves', () => {
  assert.equal(estimateLeftMs(GIB, GIB / 2), 2000)
  assert.equal(estimateLeftMs(GIB, 0), undefined)
  assert.equal(estimateLeftMs(GIB, undefined), undefined)
})
