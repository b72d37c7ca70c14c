import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeFrame, encodeFrame } from './message.js'

test('the checksum is of all bytes, of more than 4 GiB too', () => {
  const values = new Uint8Array(2 ** 32 + 8) // zeros that were never written take no memory
  values[2 ** 32 + 3] = 7
  const [start] = encodeFrame({}, values)
  assert.match(start!.toString('latin1'), /{"crc":1412024510}/) // as Python's zlib.crc32
})

test('messages have these bytes; a change needs another version of PARAMETER_WIRE', () => {
  const bytes = Buffer.concat(encodeFrame({ rank: 1 }, Float32Array.of(1, -2)))
  assert.equal(
    bytes.toString('hex'),
    '445343501c00000008000000000002009e47e6f2' +
      Buffer.from('{"rank":1,"crc":3280414294} ').toString('hex') +
      '0000803f000000c0',
  )
  assert.deepEqual(decodeFrame(bytes).values, Float32Array.of(1, -2))
  bytes[bytes.length - 1]! ^= 0x40
  assert.throws(() => decodeFrame(bytes), /checksum/)
})
