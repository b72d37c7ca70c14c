import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cache } from '../../cache/cache.js'
import type { ClusterStatus } from '../../cache/status/cluster-status.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { EventFilter } from '../../records/contract/record-requests.js'
import { NOW_MS } from '../../testing/example-copies.js'
import { PageDay } from './page-day.js'

const HOUR_MS = 3_600_000

function event(kind: RecordEvent['kind'], hoursAgo: number): RecordEvent {
  const place = {
    node: 'a',
    dataset: 'd',
    copyId: 'copy',
    task: null,
    reason: '',
    detail: { fetchedBytes: 300 },
  }
  return { sequence: 0, ...place, kind, atMs: NOW_MS - hoursAgo * HOUR_MS }
}

/** A day before `NOW_MS` over a record with these events, newest first, and how the record was asked for them. */
function openDay(events: readonly RecordEvent[]) {
  const asked: EventFilter[] = []
  let failure: Error | undefined
  const listEvents = async (filter: EventFilter) => {
    if (failure) throw failure
    asked.push(filter)
    return events.filter(({ kind }) => filter.kinds?.includes(kind)).slice(0, filter.limit)
  }
  const status = { takenAtMs: NOW_MS, transfers: [], waits: [], nodes: [], datasets: [] }
  const day = new PageDay({ record: { listEvents }, nowMs: () => NOW_MS } as unknown as Cache)
  return {
    asked,
    describe: () => day.describe(status as unknown as ClusterStatus),
    fail: (error: Error | undefined) => {
      failure = error
    },
  }
}

test('a day with more uses than are read begins its uses at the oldest of them, and keeps its stagings', async () => {
  const uses = Array.from({ length: 30_000 }, (_, at) => event('leased', at / 10_000))
  const { describe } = openDay([...uses, event('staged', 20)])
  const day = await describe()
  assert.deepEqual([day.usesSpanMs / HOUR_MS, day.uses.length, day.waiting.length], [2, 24, 24])
  assert.deepEqual([day.spanMs / HOUR_MS, day.receivedBytesPerSecond.length], [24, 288])
  assert.equal(
    day.receivedBytesPerSecond.findIndex((rate) => rate > 0),
    4 * 12,
  )
})

test('all viewers of one status share an answer, and after a failure the next one asks again', async () => {
  const { describe, fail } = openDay([])
  fail(new Error('away'))
  await assert.rejects(describe(), /away/)
  fail(undefined)
  assert.equal(await describe(), await describe())
})

test('the record is asked for a day without pages: a last page would read all older events', async () => {
  const { asked, describe } = openDay([event('leased', 1)])
  await describe()
  await describe()
  assert.deepEqual(
    asked.map(({ sinceMs, before }) => [sinceMs, before]),
    [
      [NOW_MS - 24 * HOUR_MS, undefined],
      [NOW_MS - 24 * HOUR_MS, undefined],
      [NOW_MS - 24 * HOUR_MS, undefined],
    ],
  )
})
