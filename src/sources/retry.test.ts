import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FailedAttempt, MAX_RETRY_AFTER_MS, planRetry } from './retry.js'

const PATIENCE_MS = 300_000

const failed: FailedAttempt = {
  code: 'SOURCE_UNREACHABLE',
  isTransient: true,
  isAway: false,
  retryAfterMs: undefined,
  attempts: 1,
  elapsedMs: 0,
  patienceMs: PATIENCE_MS,
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
  {
    name: 'goes on after 8 attempts where nobody answers',
    change: { isAway: true, attempts: 40 },
    delayMs: 5000,
  },
  {
    name: 'waits out more than five minutes where asked to',
    change: { retryAfterMs: 900_000 },
    delayMs: 900_050,
  },
  {
    name: 'gives up where nobody answers for too long',
    change: { isAway: true, elapsedMs: PATIENCE_MS },
    delayMs: undefined,
  },
  { name: 'gives up after 12 stalls', change: { code: 'SOURCE_STALLED', attempts: 12 }, delayMs: undefined },
  { name: 'gives up when the time is over', change: { elapsedMs: PATIENCE_MS }, delayMs: undefined },
  {
    name: 'gives up when the source wants more than an hour',
    change: { retryAfterMs: MAX_RETRY_AFTER_MS + 1 },
    delayMs: undefined,
  },
] satisfies { name: string; change: Partial<FailedAttempt>; delayMs: number | undefined }[]) {
  test(`planRetry ${name}`, () => assert.equal(planRetry({ ...failed, ...change }), delayMs))
}
