import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planNoteMs } from './record-fed-time.js'

test('a killed feed loses one minute or 5 % of its notes, and a day of training makes at most 400 of them', () => {
  const dayMs = 24 * 3_600_000
  let [atMs, notes] = [0, 0]
  while (atMs < dayMs) {
    const ms = planNoteMs(atMs)
    assert.ok(ms <= Math.max(60_000, atMs / 20))
    atMs += ms
    notes += 1
  }
  assert.ok(notes <= 400, `${notes} notes`)
})
