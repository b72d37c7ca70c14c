import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeFedTime } from '../../model/fed-time.js'
import { DAY_MS } from './trace-day.js'
import { traceStalls } from './trace-stalls.js'

const NOW_MS = 10 * DAY_MS
const STEP_MS = DAY_MS / 288

test('a stretch of training counts evenly in the steps that it covers, and names whom it waited for longest', () => {
  const told = { sinceAgoMs: 2 * STEP_MS, gpus: 4, gpuMs: 8 * STEP_MS, waits: { disk: 3000, store: 1000 } }
  const place = { sequence: 0, node: 'a', dataset: 'd', copyId: null, task: 'job' }
  const day = traceStalls([{ ...place, ...describeFedTime(told, NOW_MS - STEP_MS) }], NOW_MS)
  assert.deepEqual(day.gpuMs.slice(-4), [0, 4 * STEP_MS, 4 * STEP_MS, 0])
  assert.deepEqual(day.waitedGpuMs.slice(-4), [0, 2000, 2000, 0])
  assert.deepEqual([day.culprit, day.spanMs, day.gpuMs.length], ['disk', DAY_MS, 288])
})

test('a day without training waited for nobody', () => {
  const day = traceStalls([], NOW_MS)
  assert.equal(day.culprit, null)
  assert.ok(day.gpuMs.every((ms) => ms === 0))
})
