import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ConcurrencyState, planConcurrency, startConcurrency } from './plan-concurrency.js'

const state: ConcurrencyState = { limit: 20, previousRate: 100, previousLimit: 14, restIntervals: 0 }
const sample = { rate: 140, throttled: 0, isSaturated: true, cap: 64 }
for (const { name, before, seen, limit, restIntervals } of [
  { name: 'grows by half while that pays', before: state, seen: sample, limit: 30, restIntervals: 0 },
  {
    name: 'goes back to the limit before when more brought nothing',
    before: state,
    seen: { ...sample, rate: 102 },
    limit: 14,
    restIntervals: 25,
  },
  {
    name: 'halves when asked to slow down',
    before: state,
    seen: { ...sample, throttled: 3 },
    limit: 10,
    restIntervals: 10,
  },
  {
    name: 'never falls below 1',
    before: { ...state, limit: 1 },
    seen: { ...sample, throttled: 1 },
    limit: 1,
    restIntervals: 10,
  },
  { name: 'never exceeds the cap', before: state, seen: { ...sample, cap: 24 }, limit: 24, restIntervals: 0 },
  {
    name: 'falls to a cap that was lowered',
    before: state,
    seen: { ...sample, cap: 3 },
    limit: 3,
    restIntervals: 0,
  },
  {
    name: 'rests after a setback',
    before: { ...state, restIntervals: 4 },
    seen: sample,
    limit: 20,
    restIntervals: 3,
  },
  {
    name: 'learns nothing while the limit is not reached',
    before: state,
    seen: { ...sample, rate: 1, isSaturated: false },
    limit: 20,
    restIntervals: 0,
  },
]) {
  test(`planConcurrency ${name}`, () => {
    const after = planConcurrency(before, seen)
    assert.equal(after.limit, limit)
    assert.equal(after.restIntervals, restIntervals)
  })
}

/** Runs the planner against a server described only by its rate and refusals, and returns the limits. */
function simulate(serve: (limit: number) => { rate: number; throttled: number }, intervals = 200): number[] {
  const limits: number[] = []
  let now = startConcurrency(256)
  for (let interval = 0; interval < intervals; interval += 1) {
    limits.push(now.limit)
    now = planConcurrency(now, { ...serve(now.limit), isSaturated: true, cap: 256 })
  }
  return limits
}

const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!

for (const kneeAt of [24, 60, 150]) {
  test(`against a server that serves ${kneeAt} requests at once, most of the time is spent near there`, () => {
    // Up to the knee every request adds its share; beyond it, they only slow each other down.
    const limits = simulate((limit) => ({
      rate: limit <= kneeAt ? limit : kneeAt / (1 + (limit - kneeAt) / 500),
      throttled: 0,
    }))
    const settled = median(limits.slice(20))
    assert.ok(settled >= kneeAt * 0.6 && settled <= kneeAt * 1.6, `settled at ${settled}`)
  })
}

test('against a server that refuses above 10 requests at once, it stays below most of the time', () => {
  const limits = simulate((limit) => ({ rate: Math.min(limit, 10), throttled: limit > 10 ? 1 : 0 })).slice(20)
  assert.ok(limits.filter((limit) => limit <= 10).length > limits.length * 0.85, limits.join(' '))
  assert.ok(median(limits) >= 5)
})
