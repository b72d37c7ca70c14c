import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFrame } from './message.js'

test('the checksum is of all bytes, of more than 4 GiB too', () => {
  const values = new Uint8Array(2 ** 32 + 8) // zeros that were never written take no memory
  values[2 ** 32 + 3] = 7
  const [start] = encodeFrame({}, values)
  assert.match(start!.toString('latin1'), /{"crc":1412024510}/) // as Python's zlib.crc32
})
