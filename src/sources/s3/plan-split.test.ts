import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planPartCount } from './plan-split.js'

/** 2,000 keys, two pages of them, in folders of `perFolder`. */
function listed(perFolder: number) {
  const keys = Array.from({ length: 2000 }, (_, index) => `a/${Math.floor(index / perFolder)}/${index}`)
  return { keys, pages: 2 }
}

function folders(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `a/z${index}/`)
}

test('what is left is listed in as many parts as it has pages', () => {
  assert.equal(planPartCount(folders(70), listed(60), 16), 5)
  assert.equal(planPartCount(folders(1000), listed(60), 16), 16)
  assert.equal(planPartCount(folders(1), listed(60), 16), 1)
})

test('folders of more keys than were listed are worth a part each, two where that is more', () => {
  assert.equal(planPartCount(folders(3), listed(5000), 16), 6)
})

test('without folders there is nothing to divide by', () => {
  assert.equal(planPartCount([], listed(60), 16), 1)
})
