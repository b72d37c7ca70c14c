import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatListenAddress, parseListenAddress } from './listen-address.js'

for (const [raw, address] of [
  ['127.0.0.1:7070', { host: '127.0.0.1', port: 7070 }],
  ['gpu-07:0', { host: 'gpu-07', port: 0 }],
  ['[::1]:65535', { host: '::1', port: 65_535 }],
] as const) {
  test(`parseListenAddress reads ${raw}, and formatListenAddress writes it back`, () => {
    assert.deepEqual(parseListenAddress(raw), address)
    assert.equal(formatListenAddress(address), raw)
  })
}

for (const raw of ['', '7070', ':7070', '::1:7070', 'host:70700', 'http://a:1']) {
  test(`parseListenAddress refuses ${JSON.stringify(raw)}`, () => {
    assert.throws(() => parseListenAddress(raw), { name: 'RangeError', message: /expected host:port/ })
  })
}
