import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RecordEvent } from '../../model/record-event.js'
import { exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { DAY_MS, MAX_DAY_EVENTS, traceDay } from './trace-day.js'

const HOUR_MS = 3_600_000
const NOTHING = { copies: [], transfers: [] }

function event(kind: RecordEvent['kind'], hoursAgo: number, detail: RecordEvent['detail'] = {}): RecordEvent {
  const place = { node: 'n', dataset: 'd', copyId: 'copy', task: null, reason: '' }
  return { sequence: 0, atMs: NOW_MS - hoursAgo * HOUR_MS, kind, detail, ...place }
}

/** Sums of rates times seconds, by hour before now: `[12]` is the hour that ended 12 hours ago. */
function sumHours(rates: readonly number[]): readonly number[] {
  const sums = Array.from({ length: 24 }, (_, hour) => rates.slice(hour * 12, (hour + 1) * 12))
  return sums.map((steps) => Math.round(steps.reduce((sum, rate) => sum + rate * 300, 0))).toReversed()
}

test('a download counts evenly from its start to its end, and no byte is lost', () => {
  const events = [event('staged', 4, { fetchedBytes: 3000 }), event('staging-started', 7)]
  const hours = sumHours(traceDay(events, NOTHING, NOW_MS).receivedBytesPerSecond)
  assert.deepEqual(hours.slice(2, 9), [0, 0, 1000, 1000, 1000, 0, 0])
  assert.equal(
    hours.reduce((sum, bytes) => sum + bytes),
    3000,
  )
})

test('a short download lies in one step; one whose start is unknown at its end', () => {
  const at = event('staged', 1.5, { fetchedBytes: 77 })
  assert.equal(sumHours(traceDay([at], NOTHING, NOW_MS).receivedBytesPerSecond)[1], 77)
})

test('a download whose start is older than the day began when its copy did', () => {
  const staged = event('staged', 22, { fetchedBytes: 4000 })
  const copies = [{ ...exampleCopy('copy'), copyId: 'copy', createdAtMs: NOW_MS - 26 * HOUR_MS }]
  const hours = sumHours(traceDay([staged], { copies, transfers: [] }, NOW_MS).receivedBytesPerSecond)
  assert.deepEqual(hours.slice(20), [0, 0, 1000, 1000])
})

test('a day with more events than are read begins at the oldest of them, instead of with hours of nothing', () => {
  const events = Array.from({ length: MAX_DAY_EVENTS }, (_, at) =>
    event('staging-started', (6 * at) / (MAX_DAY_EVENTS - 1)),
  )
  const whole = traceDay(events.slice(1), NOTHING, NOW_MS)
  assert.deepEqual([whole.spanMs, whole.receivedBytesPerSecond.length], [DAY_MS, 288])
  const { spanMs, receivedBytesPerSecond, spaceBytes } = traceDay(events, NOTHING, NOW_MS)
  assert.deepEqual([spanMs / HOUR_MS, receivedBytesPerSecond.length, spaceBytes.length], [6, 72, 72])
})

test('a copy takes space from its staging on, until its eviction', () => {
  const evicted = [event('evicted', 2, { chargedBytes: 500 }), event('staged', 20, { fetchedBytes: 1 })]
  const old = exampleCopy('old', { state: 'ready', chargedBytes: 100, readyAtMs: NOW_MS - 99 * HOUR_MS })
  const fresh = exampleCopy('fresh', { state: 'ready', chargedBytes: 7, readyAtMs: NOW_MS - HOUR_MS })
  const { spaceBytes } = traceDay(evicted, { copies: [old, fresh], transfers: [] }, NOW_MS)
  const ago = (hours: number) => spaceBytes[288 - 1 - hours * 12]
  assert.deepEqual([23, 10, 1.5, 0].map(ago), [100, 600, 100, 107])
})

test('what was evicted today and staged before has been there since the morning', () => {
  const { spaceBytes } = traceDay([event('evicted', 12, { chargedBytes: 9 })], NOTHING, NOW_MS)
  assert.deepEqual([spaceBytes[0], spaceBytes.at(-1)], [9, 0])
})

test('a copy that an undo brought back takes space from then on; an undone release changes nothing', () => {
  const space = (detail: RecordEvent['detail']) => {
    const events = [event('evicted', 2, { chargedBytes: 500 }), event('undone', 10, { undoes: 1, ...detail })]
    const { spaceBytes } = traceDay(events, NOTHING, NOW_MS)
    return [20, 5, 1].map((hours) => spaceBytes[288 - 1 - hours * 12])
  }
  assert.deepEqual(space({ version: 'v1' }), [0, 500, 0])
  assert.deepEqual(space({}), [500, 500, 0])
})
