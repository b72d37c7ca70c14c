import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FailedAttempt, MAX_TOTAL_MS, planRetry } from './plan-retry.js'

const failed: FailedAttempt = {
  code: 'SOURCE_UNREACHABLE',
  isTransient: true,
  retryAfterMs: undefined,
  attempts: 1,
  elapsedMs: 0,
  random: 0.5,
}

for (const { name, change, delayMs } of [
  { name: 'waits a random share of 100 ms at first', change: {}, delayMs: 50 },
  { name: 'doubles the ceiling each time', change: { attempts: 4 }, delayMs: 400 },
  { name: 'may wait nothing at all', change: { attempts: 4, random: 0 }, delayMs: 0 },
  {
    name: 'never waits over 10 s of its own accord',
    change: { code: 'SOURCE_THROTTLED', attempts: 11, random: 1 },
    delayMs: 10_000,
  },
  { name: 'waits out Retry-After and a little more', change: { retryAfterMs: 20_000 }, delayMs: 20_050 },
  { name: 'gives up on what time does not heal', change: { isTransient: false }, delayMs: undefined },
  { name: 'gives up after 8 attempts', change: { attempts: 8 }, delayMs: undefined },
  { name: 'gives up after 3 stalls', change: { code: 'SOURCE_STALLED', attempts: 3 }, delayMs: undefined },
  { name: 'gives up when the time is over', change: { elapsedMs: MAX_TOTAL_MS }, delayMs: undefined },
  {
    name: 'gives up when the source wants more time than there is',
    change: { retryAfterMs: MAX_TOTAL_MS },
    delayMs: undefined,
  },
] satisfies { name: string; change: Partial<FailedAttempt>; delayMs: number | undefined }[]) {
  test(`planRetry ${name}`, () => assert.equal(planRetry({ ...failed, ...change }), delayMs))
}
