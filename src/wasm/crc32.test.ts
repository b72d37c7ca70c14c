import assert from 'node:assert/strict'
import { randomFillSync } from 'node:crypto'
import { test } from 'node:test'
import * as zlib from 'node:zlib'
import { allocateForCrc32, crc32 } from './crc32.js'
import { WebAssembly } from './runtime.js'

const room = allocateForCrc32(300_000)
randomFillSync(room)

/** Near the lengths where folding starts, and where turns and windows end. */
const LENGTHS = [
  0, 1, 1023, 1024, 1025, 1087, 1088, 4096, 8191, 8512, 8576, 8577, 16_704, 16_705, 40_000, 250_001,
]

for (const length of LENGTHS)
  test(`${length} bytes have the CRC-32 that zlib finds, wherever they begin and whatever came before them`, () => {
    for (const start of [0, 1, 64, 4099])
      for (const previous of [0, 1, 0x80000001, 0xffffffff]) {
        const bytes = room.subarray(start, start + length)
        assert.equal(crc32(bytes, previous), zlib.crc32(bytes, previous))
      }
  })

test('bytes are left as they were', () => {
  const before = Buffer.from(room)
  crc32(room, 0x12345678)
  assert.ok(room.equals(before))
})

test('what is told in pieces is what is told at once', () => {
  let value = 0
  for (let at = 0; at < room.length; at += 7001) value = crc32(room.subarray(at, at + 7001), value)
  assert.equal(value, zlib.crc32(room))
})

test('one changed bit is seen wherever it is', () => {
  const bytes = room.subarray(64, 64 + 20_000)
  const intact = crc32(bytes)
  for (let at = 0; at < bytes.length; at += 37) {
    bytes[at]! ^= 0x10
    assert.notEqual(crc32(bytes), intact)
    bytes[at]! ^= 0x10
  }
})

test('two rooms in turn, and bytes outside of any', () => {
  const other = allocateForCrc32(5000)
  randomFillSync(other)
  const outside = Buffer.from(other)
  for (const bytes of [other, room, outside, other]) assert.equal(crc32(bytes), zlib.crc32(bytes))
})

test('room for more than WebAssembly can address is there all the same', () => {
  const large = allocateForCrc32(4 * 1024 ** 3)
  assert.equal(large.length, 4 * 1024 ** 3)
  assert.equal(crc32(large.subarray(0, 5000)), zlib.crc32(large.subarray(0, 5000)))
})

test('room is there all the same where the engine may take no more addresses', (context) => {
  context.mock.method(WebAssembly, 'Memory', function refuse() {
    throw new RangeError('WebAssembly.Memory(): could not allocate memory')
  })
  const plain = allocateForCrc32(5000)
  randomFillSync(plain)
  assert.equal(plain.length, 5000)
  assert.equal(crc32(plain), zlib.crc32(plain))
})
