import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StreamMeter } from './stream-meter.js'

test('the wait for batches is told as quantiles of the newest 1,024', () => {
  const meter = new StreamMeter(0)
  assert.equal(meter.findWaitMs(0.5), 0)
  for (let index = 0; index < 5000; index++) meter.deliver(0, 0, 9999) // long forgotten
  for (let index = 0; index < 1024; index++) meter.deliver(0, 1000, 1000 + ((index * 389) % 1024))
  assert.equal(meter.findWaitMs(0.5), 512)
  assert.equal(meter.findWaitMs(0.99), 1013)
  assert.equal(meter.findWaitMs(1), 1023)
})

test('before 1,024 batches, those that there were count', () => {
  const meter = new StreamMeter(0)
  for (const waitMs of [5, 1, 3]) meter.deliver(0, 10, 10 + waitMs)
  assert.equal(meter.findWaitMs(0.5), 3)
  assert.equal(meter.findWaitMs(0.99), 5)
})
