import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteBudget } from './byte-budget.js'

const MIB = 1024 * 1024

test('before the pace is known two large parts are under way, or 1 MiB of small objects', () => {
  const parts = new ByteBudget()
  parts.began(16 * MIB, 'ordered')
  assert.equal(parts.isSpent(0), false)
  parts.began(16 * MIB, 'ordered')
  assert.equal(parts.isSpent(0), true)
  parts.ended(16 * MIB, 'ordered', 10)
  assert.equal(parts.isSpent(0), false)
  const objects = new ByteBudget()
  for (let count = 0; count < 9; count++) objects.began(MIB / 10, 'ordered')
  assert.equal(objects.isSpent(0), false)
  for (let count = 0; count < 2; count++) objects.began(MIB / 10, 'ordered')
  assert.equal(objects.isSpent(0), true)
})

test('as much is under way as arrives in half a second, of what is counted here', () => {
  const budget = new ByteBudget()
  assert.equal(budget.isSpent(0), false)
  for (let parts = 0; parts < 8; parts++) budget.began(16 * MIB, 'ordered')
  for (let parts = 0; parts < 5; parts++) budget.ended(16 * MIB, 'ordered', 10) // in 500 ms: 80 MiB in half a second
  assert.equal(budget.isSpent(499), true)
  assert.equal(budget.isSpent(500), false)
  for (let parts = 0; parts < 2; parts++) budget.began(16 * MIB, 'ordered')
  assert.equal(budget.isSpent(501), true)
  // One more arrives in the next half second: the pace changes.
  budget.ended(16 * MIB, 'ordered', 10)
  assert.equal(budget.isSpent(900), false)
  assert.equal(budget.isSpent(1000), true)
})

test('of a store that takes long to answer as much is under way as keeps it busy', () => {
  const budget = new ByteBudget()
  assert.equal(budget.isSpent(0), false)
  for (let count = 0; count < 100; count++) budget.began(MIB / 10, 'ordered')
  for (let count = 0; count < 20; count++) budget.ended(MIB / 10, 'ordered', count === 7 ? 1000 : 3000)
  assert.equal(budget.isSpent(500), true) // 8 MiB: 2 arrive in half a second, 6 until the quickest next answer is here
  for (let count = 0; count < 21; count++) budget.ended(MIB / 10, 'ordered', 1000)
  assert.equal(budget.isSpent(501), false)
})

test('of what readers wait for 64 MiB are under way, and more when more arrives', () => {
  const budget = new ByteBudget()
  budget.began(256 * MIB, 'listed')
  assert.equal(budget.isWantedSpent(0), false, 'what no reader waits for does not count')
  for (let parts = 0; parts < 3; parts++) budget.began(16 * MIB, 'wanted')
  assert.equal(budget.isWantedSpent(1), false)
  budget.began(16 * MIB, 'wanted')
  assert.equal(budget.isWantedSpent(2), true)
  budget.ended(16 * MIB, 'wanted', 100)
  budget.began(16 * MIB, 'wanted')
  assert.equal(budget.isWantedSpent(100), false)
  budget.began(16 * MIB, 'wanted')
  assert.equal(budget.isWantedSpent(101), true)
  assert.equal(budget.isWantedSpent(500), true)
})
