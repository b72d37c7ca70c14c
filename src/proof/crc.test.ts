import assert from 'node:assert/strict'
import { randomFillSync } from 'node:crypto'
import { test } from 'node:test'
import { WebAssembly } from '../wasm/runtime.js'
import { allocateForCrc64, getCrc } from './crc.js'
import { TableCrc } from './crc-by-tables.js'

const room = allocateForCrc64(300_000)
randomFillSync(room)
const crc64 = getCrc('crc64nvme')
const byTables = new TableCrc('crc64nvme')

// Lengths around the start of folding and the ends of turns and windows.
for (const length of [0, 1, 4095, 4096, 4097, 4160, 65_536, 67_583, 67_584, 67_585, 67_648, 250_001])
  test(`${length} bytes in room for it have the same CRC-64, wherever they begin and whatever came before`, () => {
    for (const start of [0, 1, 64, 4099])
      for (const previous of [0n, 1n, 0x8000000000000001n, 0xffffffffffffffffn]) {
        const bytes = room.subarray(start, start + length)
        assert.equal(crc64(bytes, previous), byTables.update(bytes, previous))
      }
  })

test('bytes in such room are left as they were', () => {
  const before = Buffer.from(room)
  crc64(room, 0x123456789abcdef0n)
  assert.ok(room.equals(before))
})

test('room begins at a page', () => {
  assert.equal(room.byteOffset % 4096, 0)
})

test('two rooms in turn, bytes outside of any, and another checksum of bytes in one', () => {
  const other = allocateForCrc64(5000)
  randomFillSync(other)
  const outside = Buffer.from(other)
  for (const bytes of [other, room, outside, other])
    assert.equal(crc64(bytes, 0n), byTables.update(bytes, 0n))
  assert.equal(getCrc('crc32c')(room, 0n), new TableCrc('crc32c').update(room, 0n))
})

test('room is there all the same where the engine may take no more addresses', (context) => {
  context.mock.method(WebAssembly, 'Memory', function refuse() {
    throw new RangeError('WebAssembly.Memory(): could not allocate memory')
  })
  const plain = allocateForCrc64(5000)
  randomFillSync(plain)
  assert.equal(plain.length, 5000)
  assert.equal(crc64(plain, 0n), byTables.update(plain, 0n))
})
