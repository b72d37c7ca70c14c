import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RecordEvent, RecordEventKind } from '../../model/record-event.js'
import { exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { findEvictionRank, findKeepers } from './explain-copy.js'
import { explainDataset, findNodesOf } from './explain-dataset.js'

const NOTHING = { copies: [], layouts: [], leases: [], events: [], outlooks: [] }
const LOCK = { by: 'ops', reason: 'test', atMs: NOW_MS }

for (const { name, changes, keepers } of [
  { name: 'an idle copy: nothing', changes: {}, keepers: [] },
  { name: 'its leases', changes: { referenceCount: 2 }, keepers: ['leases'] },
  { name: 'a lock', changes: { lock: LOCK }, keepers: ['lock'] },
  { name: 'leases and a lock', changes: { referenceCount: 1, lock: LOCK }, keepers: ['leases', 'lock'] },
  { name: 'having no source', changes: { source: null }, keepers: ['no source'] },
  { name: 'its stager', changes: { state: 'staging', isBeingStaged: true }, keepers: ['stager'] },
  { name: 'an abandoned staging: nothing', changes: { state: 'staging' }, keepers: [] },
  { name: 'being evicted already', changes: { state: 'evicting' }, keepers: ['being evicted'] },
  {
    name: 'its listing',
    changes: { state: 'reserved', isBeingStaged: true },
    keepers: ['stager', 'not admitted yet'],
  },
  { name: 'a listing that was left', changes: { state: 'reserved' }, keepers: ['interrupted listing'] },
] as const) {
  test(`what keeps ${name}`, () => {
    const copy = exampleCopy('a', changes)
    assert.deepEqual(findKeepers(copy), keepers)
    assert.equal(findEvictionRank(copy, [copy]) === undefined, keepers.length > 0, 'kept or ranked')
  })
}

test('the rank of a copy counts the evictable copies that go before it', () => {
  const old = exampleCopy('old', { lastUsedAtMs: 1 })
  const held = exampleCopy('held', { lastUsedAtMs: 0, referenceCount: 1 })
  const recent = exampleCopy('recent', { lastUsedAtMs: 2 })
  assert.deepEqual(findEvictionRank(recent, [recent, held, old]), {
    rank: 2,
    candidates: 2,
    reason: 'least recently used',
  })
})

function event(sequence: number, kind: RecordEventKind, copyId: string | null = null): RecordEvent {
  return {
    sequence,
    atMs: sequence,
    kind,
    node: 'node-a',
    dataset: 'a',
    copyId,
    task: null,
    reason: kind,
    detail: {},
  }
}

test('a copy is here because of the event that staged or adopted it, not of what happened since', () => {
  const copy = exampleCopy('a', { copyId: 'c' })
  const events = [
    event(4, 'locked', 'c'),
    event(3, 'released', 'c'),
    event(2, 'staged', 'c'),
    event(1, 'staging-started', 'c'),
  ]
  const explained = explainDataset('a', { ...NOTHING, copies: [copy], events })
  assert.equal(explained.copies[0]?.origin?.sequence, 2)
})

test('a dataset without a copy is explained by its last eviction, refusal and failure', () => {
  const events = [
    event(6, 'refused'),
    event(5, 'evicted'),
    event(4, 'refused'),
    event(3, 'staging-failed'),
    event(2, 'evicted'),
  ]
  const explained = explainDataset('a', { ...NOTHING, events })
  assert.deepEqual(
    [explained.lastRefused?.sequence, explained.lastEvicted?.sequence, explained.lastFailed?.sequence],
    [6, 5, 3],
  )
})

test('a copy has the rank that the order of its node gives it, and the first of each node go next', () => {
  const copy = exampleCopy('a', { copyId: 'copy-a' })
  const rank = { rank: 2, candidates: 9, reason: 'least recently used' }
  const old = {
    copy: exampleCopy('old', { copyId: 'copy-old', lastUsedAtMs: 8 }),
    reason: 'abandoned staging',
  }
  const outlooks = [{ ranks: [{ copyId: 'copy-a', ...rank }], first: [old] }]
  const explained = explainDataset('a', { ...NOTHING, copies: [copy], outlooks })
  assert.deepEqual(explained.copies[0]?.rank, rank)
  assert.deepEqual(explained.nextVictims, [
    {
      ...{ copyId: 'copy-old', dataset: 'old', node: 'node-a', diskBytes: 100, lastUsedAtMs: 8 },
      reason: 'abandoned staging',
    },
  ])
})

test('the nodes of a dataset are those of its copies, then those of its history', () => {
  const copies = [exampleCopy('a', { node: 'node-b' }), exampleCopy('a', { node: 'node-c' })]
  assert.deepEqual(findNodesOf({ copies, events: [event(2, 'evicted'), event(1, 'refused')] }), [
    'node-b',
    'node-c',
    'node-a',
  ])
})
