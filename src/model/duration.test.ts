import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDuration, parseDuration } from './duration.js'

for (const [raw, durationMs] of [
  ['250ms', 250],
  ['90s', 90_000],
  ['24h', 86_400_000],
  ['1h30m', 5_400_000],
  ['1h 30m', 5_400_000],
  ['0.5s', 500],
  ['7d', 604_800_000],
  ['0s', 0],
] as const) {
  test(`parseDuration reads ${raw} as ${durationMs} ms`, () => {
    assert.equal(parseDuration(raw), durationMs)
  })
}

for (const raw of ['', '90', '-1s', '1w', 'soon', '1h30', '1..5s']) {
  test(`parseDuration refuses ${JSON.stringify(raw)} and says what it expected`, () => {
    assert.throws(() => parseDuration(raw), {
      name: 'RangeError',
      message: /expected a duration such as 90s/,
    })
  })
}

for (const [durationMs, text] of [
  [0, '0ms'],
  [250, '250ms'],
  [30_000, '30s'],
  [90_000, '1m30s'],
  [86_400_000, '1d'],
  [93_784_000, '1d2h'],
  [86_404_000, '1d'],
  [-90_000, '-1m30s'],
] as const) {
  test(`formatDuration writes ${durationMs} ms as ${text}`, () => {
    assert.equal(formatDuration(durationMs), text)
  })
}
