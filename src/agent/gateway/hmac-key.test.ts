import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { HmacKey } from './hmac-key.js'

for (const keyBytes of [0, 1, 32, 63, 64, 65, 200])
  test(`a key of ${keyBytes} bytes digests as node:crypto does`, () => {
    const key = randomBytes(keyBytes)
    const ours = new HmacKey(key)
    for (const text of ['', 'a', 'ümlaut 日本', 'x'.repeat(1000)])
      assert.deepEqual(ours.digest(text), createHmac('sha256', key).update(text).digest(), text.slice(0, 10))
  })
