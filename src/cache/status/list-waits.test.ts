import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RecordEvent } from '../../model/record-event.js'
import { NOW_MS } from '../../testing/example-copies.js'
import { exampleStatus } from '../../testing/example-status.js'
import { listWaits } from './list-waits.js'

const MINUTE_MS = 60_000
let sequence = 0

/** Events as `listWaits` gets them, newest first; pass them oldest first. */
function history(...events: readonly Partial<RecordEvent>[]): readonly RecordEvent[] {
  return events
    .map((event) => {
      sequence += 1
      const base = {
        kind: 'refused',
        node: 'gpu-03',
        dataset: 'flowers',
        copyId: null,
        task: '4711',
      } as const
      return { sequence, atMs: NOW_MS - MINUTE_MS, reason: 'no room', detail: {}, ...base, ...event }
    })
    .toReversed()
}

for (const { name, events, since } of [
  { name: 'since its first refusal', events: history({ atMs: NOW_MS - 9 * MINUTE_MS }, {}), since: [9] },
  { name: 'no more once it was staged', events: history({}, { kind: 'staged' }), since: [] },
  { name: 'no more once it got a copy', events: history({}, { kind: 'leased' }), since: [] },
  {
    name: 'again when it was refused after that',
    events: history({ atMs: NOW_MS - 9 * MINUTE_MS }, { kind: 'leased' }, {}),
    since: [1],
  },
  {
    name: 'no more where another task got it, because there is room now',
    events: history({}, { kind: 'leased', task: 'other' }),
    since: [],
  },
  {
    name: 'no more when it has not asked for a quarter of an hour',
    events: history({ atMs: NOW_MS - 16 * MINUTE_MS }),
    since: [],
  },
  { name: 'never where nobody is known to have asked', events: history({ task: null }), since: [] },
]) {
  test(`a refused task waits for room ${name}`, () => {
    const waits = listWaits({ takenAtMs: NOW_MS, transfers: [], events })
    assert.deepEqual(
      waits.map(({ sinceMs }) => (NOW_MS - sinceMs) / MINUTE_MS),
      since,
    )
    for (const wait of waits)
      assert.deepEqual([wait.kind, wait.task, wait.reason], ['room', '4711', 'no room'])
  })
}

test('who waits for a staging is told how far it is, the stager among them, the longest wait first', () => {
  const { transfers } = exampleStatus(0)
  const [transfer] = transfers
  const waiters = [
    { task: 'late', sinceMs: NOW_MS - 1000 },
    { task: transfer!.stager!, sinceMs: NOW_MS - 90_000 },
  ]
  const waits = listWaits({ takenAtMs: NOW_MS, transfers: [{ ...transfer!, waiters }], events: [] })
  assert.deepEqual(
    waits.map(({ task, reason }) => [task, reason]),
    [
      ['job-4800', 'gpu-01 stages it from gpu-02: 8 GiB of 20 GiB'],
      ['late', 'gpu-01 stages it for job-4800 from gpu-02: 8 GiB of 20 GiB'],
    ],
  )
  const left = listWaits({
    takenAtMs: NOW_MS,
    transfers: [{ ...transfer!, stager: null, waiters }],
    events: [],
  })
  assert.match(left[0]!.reason, /its download was interrupted/)
})
