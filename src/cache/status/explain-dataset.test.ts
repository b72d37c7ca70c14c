import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CopyUse } from '../../model/copy.js'
import type { RecordEvent, RecordEventKind } from '../../model/record-event.js'
import { exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { findEvictionRank, findKeepers } from './explain-copy.js'
import { explainDataset } from './explain-dataset.js'

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
  { name: 'not being admitted', changes: { state: 'reserved' }, keepers: ['not admitted yet'] },
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

function event(
  sequence: number,
  kind: RecordEventKind,
  copyId: string | null = null,
  dataset = 'a',
): RecordEvent {
  return {
    sequence,
    atMs: sequence,
    kind,
    node: 'node-a',
    dataset,
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
  const explained = explainDataset('a', { copies: [copy], layouts: [], leases: [], events })
  assert.equal(explained.copies[0]?.origin?.sequence, 2)
})

test('a dataset without a copy is explained by its last eviction, refusal and failure', () => {
  const events = [
    event(6, 'refused'),
    event(5, 'evicted'),
    event(4, 'refused'),
    event(3, 'staging-failed'),
    event(2, 'evicted', null, 'b'),
  ]
  const explained = explainDataset('a', { copies: [], layouts: [], leases: [], events })
  assert.deepEqual(
    [explained.lastRefused?.sequence, explained.lastEvicted?.sequence, explained.lastFailed?.sequence],
    [6, 5, 3],
  )
})

test('who would go next is said for the nodes that the dataset has to do with, in the order of eviction', () => {
  const on = (node: string, dataset: string, changes: Partial<CopyUse> = {}) =>
    exampleCopy(dataset, { node, copyId: `${node}-${dataset}`, ...changes })
  const copies = [
    on('node-a', 'a', { referenceCount: 1 }),
    on('node-a', 'recent', { lastUsedAtMs: 9 }),
    on('node-a', 'old', { lastUsedAtMs: 8 }),
    on('node-b', 'elsewhere'),
  ]
  const explained = explainDataset('a', { copies, layouts: [], leases: [], events: [] })
  assert.deepEqual(
    explained.nextVictims.map((victim) => victim.dataset),
    ['old', 'recent'],
  )
})
