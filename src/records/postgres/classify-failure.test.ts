import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classifyFailure } from './classify-failure.js'

const failure = (message: string, code?: string) => Object.assign(new Error(message), code && { code })

for (const { error, outcome } of [
  { error: failure('Connection terminated unexpectedly'), outcome: 'lost' },
  { error: failure('timeout exceeded when trying to connect'), outcome: 'lost' }, // from the pool, under load
  { error: failure('timeout expired'), outcome: 'lost' },
  { error: failure('connect', 'ECONNREFUSED'), outcome: 'lost' },
  { error: failure('deadlock detected', '40P01'), outcome: 'conflict' },
  { error: failure('syntax error', '42601'), outcome: 'failed' },
  { error: failure('something else'), outcome: 'failed' },
] as const) {
  test(`"${error.message}" is ${outcome}`, () => {
    assert.equal(classifyFailure(error), outcome)
  })
}
