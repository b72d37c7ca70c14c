import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../crash/seeded-random.js'
import { planSoak, simulatedHours } from './plan-soak.js'

/** Jobs hold copies for less than this, and ask for leases of three hours. */
const LONGEST_HOLD_MS = 60_000
const LEASE_SECONDS = 3 * 3600

for (const minutes of [4, 8, 30])
  test(`the clocks of ${minutes} minutes do not step over a lease while a job holds it`, () => {
    const { events } = planSoak(seededRandom(7), { minutes, jobs: 10 })
    const steps = events.flatMap(({ atMs, event }) =>
      event.kind === 'clock step' && event.of === 'everybody' ? [{ atMs, bySeconds: event.bySeconds }] : [],
    )
    for (const { atMs } of steps) {
      const during = steps.filter((step) => step.atMs >= atMs && step.atMs < atMs + LONGEST_HOLD_MS)
      const passed = during.reduce((sum, { bySeconds }) => sum + bySeconds, LONGEST_HOLD_MS / 1000)
      assert.ok(passed < LEASE_SECONDS, `${passed} s pass within ${LONGEST_HOLD_MS} ms`)
    }
    const hours = steps.reduce((sum, { bySeconds }) => sum + bySeconds, minutes * 60) / 3600
    assert.ok(Math.abs(hours - simulatedHours(minutes)) < 0.5, `${hours} hours pass`)
  })
