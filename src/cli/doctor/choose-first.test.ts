import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failed, ok, skipped, warning } from './check.js'
import { chooseFirst } from './choose-first.js'

const fine = ok('node', '24')
const old = warning('clock', '1m ahead', 'set the clock')
const away = failed('record', 'no answer', 'start it')
const denied = failed('source flowers', 'access denied')

for (const { name, checks, first } of [
  {
    name: 'nothing is to be done where all is well',
    checks: [fine, skipped('agents', 'none')],
    first: undefined,
  },
  {
    name: 'a failure comes before an earlier warning',
    checks: [old, away],
    first: { check: 'record', status: 'failed', remedy: 'start it' },
  },
  {
    name: 'the earliest failure comes before those that may follow from it',
    checks: [fine, away, denied],
    first: { check: 'record', status: 'failed', remedy: 'start it' },
  },
  {
    name: 'a failure without a hint is told as it was found',
    checks: [denied],
    first: { check: 'source flowers', status: 'failed', remedy: 'access denied' },
  },
  {
    name: 'a warning comes first where nothing failed',
    checks: [fine, old],
    first: { check: 'clock', status: 'warning', remedy: 'set the clock' },
  },
] as const) {
  test(`chooseFirst: ${name}`, () => {
    assert.deepEqual(chooseFirst(checks), first)
  })
}
