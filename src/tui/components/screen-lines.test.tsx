import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderToString } from 'ink'
import { NO_THROUGHPUT } from '../../cache/status/throughput.js'
import { NOW_MS } from '../../testing/example-copies.js'
import { exampleStatus } from '../../testing/example-status.js'
import { selectRows } from '../view/lists/select-rows.js'
import { drawScreen } from '../view/screen.js'
import { FIRST_SCREEN } from '../view/screen-state.js'
import { UNICODE_GLYPHS } from '../view/text/glyphs.js'
import { lineText } from '../view/text/styled-line.js'
import { ScreenLines } from './screen-lines.js'

test('ink draws the lines of the view unchanged: nothing wraps, nothing is cut', () => {
  for (const [columns, rows] of [
    [80, 24],
    [200, 60],
  ] as const) {
    const snapshot = exampleStatus(60)
    const lines = drawScreen({
      snapshot,
      problem: undefined,
      state: FIRST_SCREEN,
      rows: selectRows(snapshot, FIRST_SCREEN, NO_THROUGHPUT),
      copyHistory: snapshot.events,
      size: { columns, rows },
      context: { nowMs: NOW_MS, utcOffsetMinutes: 0, glyphs: UNICODE_GLYPHS, throughput: NO_THROUGHPUT },
    })
    const drawn = renderToString(<ScreenLines lines={lines} theme={undefined} />, { columns })
    assert.deepEqual(
      drawn.split('\n').map((line) => line.trimEnd()),
      lines.map((line) => lineText(line).trimEnd()),
    )
  }
})
