import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RecordEvent } from '../../model/record-event.js'
import { NOW_MS } from '../../testing/example-copies.js'
import { traceNodes, traceUses } from './trace-uses.js'

const HOUR_MS = 3_600_000

function event(kind: RecordEvent['kind'], hoursAgo: number, changes: Partial<RecordEvent> = {}): RecordEvent {
  const place = { node: 'a', dataset: 'd', copyId: 'copy', task: null, reason: '', detail: {} }
  return { sequence: 0, ...place, kind, atMs: NOW_MS - hoursAgo * HOUR_MS, ...changes }
}
const use = (hoursAgo: number, waitedHours: number, dataset = 'd') =>
  event('leased', hoursAgo, {
    dataset,
    detail: { isHit: waitedHours === 0, waitedMs: waitedHours * HOUR_MS },
  })
const ago = (steps: readonly number[], hours: number) => steps.at(-1 - hours * (steps.length / 24))

test('uses and hits are counted where they were, and datasets by how often they were used', () => {
  const traced = traceUses([use(2.01, 0), use(2.02, 1, 'e'), use(5.01, 0), use(30, 0)], [], NOW_MS)
  const sum = (steps: readonly number[]) => steps.reduce((total, value) => total + value)
  assert.deepEqual([sum(traced.uses), sum(traced.hits)], [3, 2])
  assert.deepEqual([ago(traced.uses, 2), ago(traced.hits, 2), ago(traced.uses, 3)], [2, 1, 0])
  assert.deepEqual(
    traced.datasets.map(({ dataset, uses, hits, usesByHour }) => [
      dataset,
      uses,
      hits,
      usesByHour[18],
      usesByHour[21],
    ]),
    [
      ['d', 2, 2, 1, 1],
      ['e', 1, 0, 0, 1],
    ],
  )
})

test('a job waits until it can read its dataset, or until now', () => {
  const waits = [{ node: 'a', sinceMs: NOW_MS - 3 * HOUR_MS }]
  const arriving = event('leased', 10, { detail: { waitedMs: HOUR_MS, readyMs: 2 * HOUR_MS } })
  const { waiting } = traceUses([use(4, 2), use(4, 1), use(23, 9), arriving], waits, NOW_MS)
  assert.deepEqual(
    [0, 2, 4, 5, 7, 10, 11, 23].map((hours) => ago(waiting, hours)),
    [1, 1, 2, 1, 0, 0, 1, 1],
  )
})

test('each node has its own half hours of bytes, waits, refusals and damage', () => {
  const staged = [
    event('staged', 1, { detail: { fetchedBytes: 6000 } }),
    event('staging-started', 2),
    event('staged', 1.9, { node: 'b', copyId: 'other', detail: { fetchedBytes: 7 } }),
  ]
  const events = [...staged, use(3, 0.25), event('refused', 4.1), event('damaged', 4.1, { node: 'b' })]
  const waits = [{ node: 'b', sinceMs: NOW_MS - 60_000 }]
  const [a, b, c] = traceNodes(['a', 'b', 'c'], events, { transfers: [], waits, nowMs: NOW_MS })
  assert.deepEqual(a!.receivedBytes.slice(-5).map(Math.round), [0, 3000, 3000, 0, 0])
  assert.deepEqual(b!.receivedBytes.slice(-5).map(Math.round), [0, 7, 0, 0, 0])
  assert.deepEqual([a!.waitedMs.at(-7), b!.waitedMs.at(-1)], [0.25 * HOUR_MS, 60_000])
  assert.deepEqual([a!.refusals.at(-9), b!.refusals.at(-9), b!.damages.at(-9)], [1, 0, 1])
  assert.ok([c!.receivedBytes, c!.waitedMs, c!.refusals, c!.damages].flat().every((value) => value === 0))
})
