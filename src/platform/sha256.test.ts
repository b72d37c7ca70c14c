import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { hmacSha256 } from './sha256.js'

test('the digest is that of node:crypto, at every length of key and text around a block', () => {
  for (let length = 0; length < 140; length++) {
    const key = randomBytes(length).toString('latin1')
    const text = randomBytes(139 - length).toString('hex')
    assert.equal(hmacSha256(key, text), createHmac('sha256', key).update(text).digest('hex'))
  }
})
