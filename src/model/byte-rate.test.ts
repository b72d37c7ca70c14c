import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseByteRate } from './byte-rate.js'

for (const [raw, bytesPerSecond] of [
  ['200MiB/s', 200 * 2 ** 20],
  ['200 MB', 200e6],
  ['1.5GB/s', 1.5e9],
  ['1Gbit/s', 125e6],
  ['10Gbps', 1.25e9],
  ['800kbit', 1e5],
  ['800Kbit', 1e5],
  ['64kiB', 65536],
  ['8bit/s', 1],
  ['4096', 4096],
  [4096, 4096],
] as const) {
  test(`parseByteRate reads ${raw} as ${bytesPerSecond} bytes per second`, () => {
    assert.equal(parseByteRate(raw), bytesPerSecond)
  })
}

for (const raw of [
  '',
  'fast',
  '10G',
  '10Mb',
  '10mb/s',
  '-1MB',
  '0',
  '7bit',
  '1MB/min',
  '1Mibit',
  Number.NaN,
]) {
  test(`parseByteRate refuses ${JSON.stringify(raw)}, saying what it expects`, () => {
    assert.throws(() => parseByteRate(raw), /RangeError: expected a rate such as 200MiB\/s/)
  })
}
