import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseTrainerTime, parseWorkerTime } from './parse-trainer-time.js'

const TOLD = { rank: 0, gpus: 1, elapsedMs: 1000, feedMs: 0, transformMs: 0, startMs: 0, loaderMs: 0 }
const MADE = { rank: 0, madeMs: 300, waitedMs: 250 }

test('times of trainers and of workers are taken as they tell them', () => {
  assert.deepEqual(parseTrainerTime(TOLD), TOLD)
  assert.deepEqual(parseWorkerTime(MADE), MADE)
})

test('what is no whole number of milliseconds is refused', () => {
  assert.throws(() => parseTrainerTime({ ...TOLD, feedMs: -1 }), { code: 'FEED_PROTOCOL' })
  assert.throws(() => parseTrainerTime({ ...TOLD, elapsedMs: 'long' }), { code: 'FEED_PROTOCOL' })
  assert.throws(() => parseTrainerTime({ ...TOLD, loaderMs: undefined }), { code: 'FEED_PROTOCOL' })
  assert.throws(() => parseWorkerTime({ ...MADE, waitedMs: 0.5 }), { code: 'FEED_PROTOCOL' })
})

test('the payload has the steps of a trainer, in pairs', () => {
  const payload = Buffer.from(Uint32Array.of(50_000, 40_000, 60_000, 0xffff_ffff).buffer)
  const steps = { first: 7, tookUs: [50_000, 60_000], waitedUs: [40_000, 0xffff_ffff] }
  assert.deepEqual(parseTrainerTime({ ...TOLD, firstStep: 7 }, payload), { ...TOLD, steps })
  assert.deepEqual(parseTrainerTime(TOLD, Buffer.alloc(0)), TOLD)
})
