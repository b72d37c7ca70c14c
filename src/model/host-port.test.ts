import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatHostPort, parseHostPort } from './host-port.js'

for (const [raw, address] of [
  ['127.0.0.1:7070', { host: '127.0.0.1', port: 7070 }],
  ['gpu-07:0', { host: 'gpu-07', port: 0 }],
  ['[::1]:65535', { host: '::1', port: 65_535 }],
] as const) {
  test(`parseHostPort reads ${raw}, and formatHostPort writes it back`, () => {
    assert.deepEqual(parseHostPort(raw), address)
    assert.equal(formatHostPort(address), raw)
  })
}

test('parseHostPort uses the default port if the text has none', () => {
  assert.deepEqual(parseHostPort('gpu-07', 7171), { host: 'gpu-07', port: 7171 })
  assert.deepEqual(parseHostPort('[::1]', 7171), { host: '::1', port: 7171 })
  assert.deepEqual(parseHostPort('gpu-07:1', 7171), { host: 'gpu-07', port: 1 })
})

for (const raw of ['', '7070', ':7070', '::1:7070', 'host:70700', 'http://a:1', 'host', 'host:', 'host:-1']) {
  test(`parseHostPort refuses ${JSON.stringify(raw)}`, () => {
    assert.throws(() => parseHostPort(raw), { name: 'RangeError', message: /expected host:port/ })
  })
}
