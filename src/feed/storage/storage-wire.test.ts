import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { formatGetBatch, parseGetBatch, parseStorageHeader } from './storage-wire.js'

test('the bytes of a request are pinned: a change needs another STORAGE_PROTOCOL', () => {
  const frame = formatGetBatch(7, Uint32Array.of(3, 70_000), 4096)
  assert.equal(
    frame.toString('hex'),
    '445343420206000007000000180000001cabfff2' + '0200000000100000' + '0300000000000000' + '7011010000000000',
  )
  assert.deepEqual(parseStorageHeader(frame, 'peer'), { type: 6, request: 7, length: 24 })
  assert.deepEqual(parseGetBatch(frame.subarray(20)), { samples: Uint32Array.of(3, 70_000), maxBytes: 4096 })
})

test('a frame of another protocol or version is refused by name', () => {
  const frame = formatGetBatch(1, Uint32Array.of(1), 1)
  for (const [at, value] of [
    [0, 0],
    [4, 9],
    [12, 1],
  ] as const) {
    const changed = Buffer.from(frame)
    changed[at] = value
    assert.throws(
      () => parseStorageHeader(changed, 'peer'),
      (error) => isDscError(error, 'FEED_PROTOCOL') && /^peer/.test(error.message),
    )
  }
})

test('a header is refused when a bit of it is flipped', () => {
  const frame = formatGetBatch(7, Uint32Array.of(3), 4096)
  for (let bit = 0; bit < 20 * 8; bit++) {
    const changed = Buffer.from(frame)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    assert.throws(() => parseStorageHeader(changed, 'peer'), { code: 'FEED_PROTOCOL' }, `bit ${bit}`)
  }
})
