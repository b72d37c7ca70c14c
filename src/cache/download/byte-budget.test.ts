import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteBudget } from './byte-budget.js'

const MIB = 1024 * 1024
const part = { offset: 0, length: 16 * MIB }

test('before the pace of the link is known two parts are under way', () => {
  const budget = new ByteBudget(() => 0, 2 * part.length)
  budget.began(part)
  assert.equal(budget.isSpent(0), false)
  budget.began(part)
  assert.equal(budget.isSpent(0), true)
  budget.ended(part)
  assert.equal(budget.isSpent(0), false)
})

test('as much is under way as arrives in half a second', () => {
  let receivedBytes = 0
  const budget = new ByteBudget(() => receivedBytes, 2 * part.length)
  assert.equal(budget.isSpent(0), false)
  receivedBytes = 64 * MIB // in 400 ms: 80 MiB in half a second
  for (let parts = 0; parts < 4; parts++) budget.began(part)
  assert.equal(budget.isSpent(400), false)
  budget.began(part)
  assert.equal(budget.isSpent(401), true)
  // Nothing more has come since: the pace is another.
  for (let parts = 0; parts < 3; parts++) budget.ended(part)
  assert.equal(budget.isSpent(500), false)
  assert.equal(budget.isSpent(900), true)
})
