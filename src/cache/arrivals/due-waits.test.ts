import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DueWaits } from './due-waits.js'

/** Begins `count` waits; `due` names those that are due and have not ended. */
function beginWaits(count: number) {
  const waits = new DueWaits()
  const turns = Array.from({ length: count }, () => waits.begin())
  const over = new Set<number>()
  const due = () => turns.flatMap(({ isDue }, index) => (isDue && !over.has(index) ? [index] : []))
  const end = (index: number) => {
    over.add(index)
    turns[index]!.end()
  }
  return { waits, turns, due, end }
}

test('of many waits only those close behind the oldest are due', () => {
  const { due } = beginWaits(200)
  assert.deepEqual(
    due(),
    Array.from({ length: 64 }, (_, index) => index),
  )
})

test('the end of a wait has others come due only when it was the oldest', () => {
  const { due, end } = beginWaits(200)
  for (let index = 1; index < 60; index++) end(index)
  assert.deepEqual(due(), [0, 60, 61, 62, 63], 'the oldest is not to share its link with more')
  end(0)
  assert.equal(due().at(-1), 60 + 63)
})

test('a wait that comes due later says so, once it does', async () => {
  const { turns, end } = beginWaits(65)
  let isDue = false
  const called = turns[64]!.comesDue.then(() => {
    isDue = true
  })
  await Promise.resolve()
  assert.equal(isDue, false)
  end(0)
  await called
  assert.equal(turns[64]!.isDue, true)
})

test('a wait that was given up before it came due holds up none', () => {
  const { waits, turns, due, end } = beginWaits(130)
  for (let index = 0; index < 130; index++) if (index !== 100) end(index)
  assert.deepEqual(due(), [100])
  assert.equal(turns[129]!.isDue, true, 'it was due for as long as it lasted')
  end(100)
  assert.equal(waits.begin().isDue, true)
})
