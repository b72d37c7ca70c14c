import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RecordEvent } from '../../model/record-event.js'
import { advise } from './advise.js'
import { HistoryTally } from './history-tally.js'
import type { Report } from './read-report.js'

const EMPTY: Omit<Report, 'advice' | 'jobs'> = {
  sinceMs: 0,
  untilMs: 1000,
  node: null,
  uses: 0,
  hits: 0,
  readBytes: 0,
  storeBytes: 0,
  peerBytes: 0,
  savedBytes: 0,
  waitedMs: 0,
  usesOfUnknownSize: 0,
  datasets: [],
  waits: [],
  refusals: [],
  unused: [],
}
const refusal = (limits: readonly string[]) => ({
  dataset: 'd',
  node: 'n',
  limits,
  lastTask: 't',
  lastAtMs: 0,
  lastReason: 'no room',
  count: 2,
})
const unused = { dataset: 'old', node: 'n', diskBytes: 9, lastUsedAtMs: 0, lastTask: null, isLocked: false }
const wait = { task: 't', dataset: 'slow', node: 'n', waitedMs: 120_000, atMs: 0, parties: [] }
const again = {
  dataset: 'd',
  uses: 0,
  hits: 0,
  waitedMs: 0,
  readBytes: 0,
  storeBytes: 0,
  peerBytes: 0,
  evictions: 2,
  stagedAgain: 2,
  stagedAgainBytes: 99,
}

for (const { name, seen, changes } of [
  { name: 'says nothing where nothing stands out', seen: {}, changes: [] },
  {
    name: 'raises the number of datasets where that alone refused',
    seen: { refusals: [refusal(['maxDatasets'])] },
    changes: ['raise cache.maxDatasets'],
  },
  {
    name: 'does not raise it where the disk is full, too',
    seen: { refusals: [refusal(['maxDatasets', 'minFree'])] },
    changes: ['a larger disk, or dsc prepare --stripe'],
  },
  {
    name: 'evicts what is unused before it raises the quota',
    seen: { refusals: [refusal(['maxPercent'])], unused: [unused] },
    changes: ['dsc evict old', 'dsc evict old, where space is short'],
  },
  {
    name: 'unlocks what is locked and unused',
    seen: { unused: [{ ...unused, isLocked: true }] },
    changes: ['dsc evict old, where space is short', 'dsc unlock old'],
  },
  {
    name: 'locks what is fetched again and again',
    seen: { datasets: [again] },
    changes: ['dsc lock d, or cache.shares for those who use it'],
  },
  { name: 'does not judge by few uses', seen: { uses: 19, hits: 0 }, changes: [] },
  {
    name: 'sends jobs to their data where few find it',
    seen: { uses: 20, hits: 9 },
    changes: ['sbatch $(dsc hint <dataset> --prefer), or larger quotas'],
  },
  {
    name: 'stages ahead what was waited for',
    seen: { waits: [wait] },
    changes: ['dsc prepare slow --prefetch before its jobs begin'],
  },
] as readonly { name: string; seen: Partial<Report>; changes: readonly string[] }[]) {
  test(`advice ${name}`, () => {
    assert.deepEqual(
      advise({ ...EMPTY, ...seen }).map(({ change }) => change),
      changes,
    )
  })
}

function event(kind: RecordEvent['kind'], changes: Partial<RecordEvent> = {}): RecordEvent {
  const place = { node: 'n', dataset: 'd', copyId: 'c', task: 't' }
  return { sequence: 1, atMs: 1, kind, ...place, reason: 'r', detail: {}, ...changes }
}

test('a staging counts as again only after an eviction from the same node, newest first', () => {
  const tally = new HistoryTally()
  const staged = { detail: { fetchedBytes: 10 } }
  tally.add(event('evicted')) // newest event: nothing follows it
  tally.add(event('staged', staged))
  tally.add(event('evicted', { node: 'elsewhere' }))
  tally.add(event('evicted'))
  tally.add(event('staged', staged)) // the first one
  const { stagedAgain, stagedAgainBytes, evictions, storeBytes } = tally.datasets.get('d')!
  assert.deepEqual(
    { stagedAgain, stagedAgainBytes, evictions, storeBytes },
    {
      stagedAgain: 1,
      stagedAgainBytes: 10,
      evictions: 3,
      storeBytes: 20,
    },
  )
})

test('an eviction that was taken back counts as none', () => {
  const tally = new HistoryTally()
  tally.add(event('staged', { detail: { fetchedBytes: 10 } }))
  tally.add(event('undone', { detail: { undoes: 7 } }))
  tally.add(event('evicted', { sequence: 7 }))
  const { stagedAgain, evictions } = tally.datasets.get('d')!
  assert.deepEqual({ stagedAgain, evictions }, { stagedAgain: 0, evictions: 0 })
})

test('what came from the store and from nodes is told apart; uses of an earlier dsc have no size', () => {
  const tally = new HistoryTally()
  tally.add(
    event('staged', {
      detail: { fetchedBytes: 30, origins: { storeBytes: 10, peerBytes: { a: 15, b: 5 } } },
    }),
  )
  tally.add(event('leased', { detail: { isHit: true, waitedMs: 0 } }))
  tally.add(event('leased', { detail: { isHit: false, waitedMs: 7, contentBytes: 30 } }))
  const { storeBytes, peerBytes, readBytes, uses, hits, waitedMs } = tally.datasets.get('d')!
  assert.deepEqual([storeBytes, peerBytes, readBytes, uses, hits, waitedMs], [10, 20, 30, 2, 1, 7])
  assert.equal(tally.usesOfUnknownSize, 1)
})

test('of ten thousand waits the twenty longest are kept', () => {
  const tally = new HistoryTally()
  for (let index = 0; index < 10_000; index++) {
    const waitedMs = ((index * 7919) % 10_000) + 1
    tally.add(event('leased', { task: `t${waitedMs}`, detail: { waitedMs } }))
  }
  assert.deepEqual(
    tally.waits.map(({ waitedMs }) => waitedMs),
    Array.from({ length: 20 }, (_, index) => 10_000 - index),
  )
})
