import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatByteSize, parseByteSize } from './byte-size.js'

for (const [raw, bytes] of [
  ['4096', 4096],
  [4096, 4096],
  ['0', 0],
  ['50GiB', 50 * 2 ** 30],
  ['10GB', 10e9],
  ['1.5 TiB', 1.5 * 2 ** 40],
  ['10gib', 10 * 2 ** 30],
  ['7B', 7],
  ['3kB', 3000],
] as const) {
  test(`parseByteSize reads ${JSON.stringify(raw)} as ${bytes} bytes`, () => {
    assert.equal(parseByteSize(raw), bytes)
  })
}

for (const raw of [
  '',
  '10G',
  '-1',
  '1e3',
  'GiB',
  '1.2.3MB',
  '10 Gi',
  '9007199254740993',
  '99999999PiB',
  -5,
  Number.NaN,
]) {
  test(`parseByteSize refuses ${JSON.stringify(raw)} and says what it expected`, () => {
    assert.throws(() => parseByteSize(raw), {
      name: 'RangeError',
      message: /expected a byte size such as 50GiB/,
    })
  })
}

for (const [bytes, text] of [
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1 KiB'],
  [1536, '1.5 KiB'],
  [100 * 2 ** 20, '100 MiB'],
  [50 * 2 ** 30, '50 GiB'],
  [2 ** 30 - 1, '1 GiB'],
  [-1536, '-1.5 KiB'],
  [1234567890, '1.15 GiB'],
] as const) {
  test(`formatByteSize writes ${bytes} bytes as ${text}`, () => {
    assert.equal(formatByteSize(bytes), text)
  })
}
