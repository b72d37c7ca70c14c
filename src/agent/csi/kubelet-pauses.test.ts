import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTimeToPause, KubeletPauses } from './kubelet-pauses.js'

const HOLD_MS = 110_000
const TARGET = '/pods/u-1/data'

/**
 * Computes how long a copy that is ready after `stagingMs` waits for kubelet, in ms. Kubelet pauses for half a second
 * after the first refused call, and twice as long after each further one. `misjudged` is the estimated time left divided
 * by the true one.
 */
function simulate(stagingMs: number, misjudged: number): number {
  const pauses = new KubeletPauses()
  let nextPauseMs = 500
  for (let nowMs = 0; ; nextPauseMs = Math.min(2 * nextPauseMs, 122_000)) {
    const pauseMs = pauses.asked(TARGET, nowMs)
    const endMs = nowMs + HOLD_MS
    while (nowMs < endMs) {
      if (nowMs >= stagingMs) return nowMs - stagingMs
      const leftMs = (stagingMs - nowMs) * misjudged
      if (isTimeToPause({ leftMs, heldMs: endMs - nowMs, pauseMs })) break
      nowMs += 250
    }
    pauses.refused(TARGET, nowMs)
    nowMs += nextPauseMs
  }
}

for (const { misjudged, minutes, latestMs } of [
  { misjudged: 0.8, minutes: 15, latestMs: 1000 },
  { misjudged: 1.25, minutes: 15, latestMs: 1000 },
  { misjudged: 1, minutes: 30, latestMs: 12_000 }, // by then kubelet pauses for longer than it waits
]) {
  test(`kubelet waits for the last byte within ${minutes} min, if the time left is judged ${misjudged} times as long`, () => {
    for (let stagingMs = 1000; stagingMs <= minutes * 60_000; stagingMs += 1000)
      assert.ok(simulate(stagingMs, misjudged) <= latestMs, `a staging of ${stagingMs} ms`)
  })
}

test('a volume that is mounted or was given up begins again with the shortest pause', () => {
  const pauses = new KubeletPauses()
  assert.equal(pauses.asked(TARGET, 0), 500)
  pauses.refused(TARGET, 0)
  assert.equal(pauses.asked(TARGET, 4000), 8000)
  pauses.refused('/pods/u-2/data', 700_000)
  assert.equal(pauses.asked(TARGET, 700_000), 500)
  pauses.forget('/pods/u-2/data')
  assert.equal(pauses.asked('/pods/u-2/data', 704_000), 500)
})
