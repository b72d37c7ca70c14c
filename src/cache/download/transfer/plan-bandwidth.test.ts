import assert from 'node:assert/strict'
import { test } from 'node:test'
import { takeBandwidth } from './plan-bandwidth.js'

test('takeBandwidth lets the limit through and no more, for all takers together', () => {
  const state = { paidAtMs: 0 }
  let nowMs = 1000
  let taken = 0
  while (nowMs < 11_000) {
    const waitMs = takeBandwidth(state, 64_000, { bytesPerSecond: 1_000_000, nowMs })
    taken += 64_000
    nowMs += Math.max(waitMs, 0.01)
  }
  assert.ok(Math.abs(taken - 10_000_000) <= 2 * 64_000, `${taken}`)
})

test('takeBandwidth does not save up time that passed unused', () => {
  const state = { paidAtMs: 0 }
  takeBandwidth(state, 1, { bytesPerSecond: 1000, nowMs: 0 })
  assert.equal(takeBandwidth(state, 1000, { bytesPerSecond: 1000, nowMs: 100_000 }), 1000)
})
