import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { formatGetBatch, parseGetBatch, parseHeader } from './storage-wire.js'

test('the bytes of a request are pinned: a change needs another STORAGE_PROTOCOL', () => {
  const frame = formatGetBatch(7, Uint32Array.of(3, 70_000), 4096, 1500)
  assert.equal(
    frame.toString('hex'),
    '44534342010600000700000018000000dc0500000000000000000000111a2389' +
      '0200000000100000' +
      '0300000000000000' +
      '7011010000000000',
  )
  assert.deepEqual(parseHeader(frame, 'peer'), { type: 6, request: 7, length: 24, deadlineMs: 1500 })
  assert.deepEqual(parseGetBatch(frame.subarray(32)), { samples: Uint32Array.of(3, 70_000), maxBytes: 4096 })
})

test('a frame of another protocol or version is refused by name', () => {
  const frame = formatGetBatch(1, Uint32Array.of(1), 1, 1)
  for (const [at, value] of [
    [0, 0],
    [4, 9],
    [12, 1],
  ] as const) {
    const changed = Buffer.from(frame)
    changed[at] = value
    assert.throws(
      () => parseHeader(changed, 'peer'),
      (error) => isDscError(error, 'FEED_PROTOCOL') && /^peer/.test(error.message),
    )
  }
})
