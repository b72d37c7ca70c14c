import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '../../model/lease.js'
import { sumUpCopies } from '../../policy/copy-sums.js'
import { DISK, exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { type CleanUpInput, type FoundCopyDirectory, isOverPolicy, planCleanUp } from './plan-clean-up.js'

const HOUR_MS = 3_600_000

function leaseOn(copyId: string, changes: Partial<Lease> = {}): Lease {
  return {
    leaseId: `lease-of-${copyId}`,
    copyId,
    purpose: 'use',
    task: 'job',
    holder: { kind: 'ttl' },
    createdAtMs: 0,
    renewedAtMs: 0,
    expiresAtMs: null,
    ...changes,
  }
}

function found(path: string, content: 'complete' | 'same' | 'half' | 'unread'): FoundCopyDirectory {
  const of =
    content === 'same' ? { name: ready.dataset, version: ready.version! } : { name: 'x', version: 'v' }
  const manifest = { dataset: of, listing: of, isComplete: content !== 'half' }
  return { path, manifest: content === 'unread' ? undefined : manifest, ageMs: 0, users: [] }
}

const abandoned = exampleCopy('abandoned', {
  state: 'staging',
  directory: '/cache/staging/1',
  lastUsedAtMs: NOW_MS - 2 * HOUR_MS,
})
const ready = exampleCopy('ready')
const replaced = exampleCopy('ready', {
  copyId: 'old',
  version: 'v0',
  readyAtMs: 1,
  directory: '/cache/copies/ready/0',
})

for (const { name, input, actions } of [
  { name: 'finds nothing to do where all is well', input: { copies: [ready] }, actions: [] },
  {
    name: 'expires what is dead and what ran out, and then evicts what they held',
    input: {
      copies: [exampleCopy('a'), exampleCopy('b')],
      leases: [leaseOn('id-a'), leaseOn('id-b', { expiresAtMs: NOW_MS })],
      dead: [{ leaseId: 'lease-of-id-a', reason: 'gone' }],
      policy: { maxDatasets: 0 },
    },
    actions: ['expire-lease lease-of-id-a', 'expire-lease lease-of-id-b', 'evict id-a', 'evict id-b'],
  },
  {
    name: 'leaves what is leased, locked or being staged, however far over the policy',
    input: {
      copies: [
        exampleCopy('leased'),
        exampleCopy('locked', { lock: { by: 'ops', reason: '', atMs: 0 } }),
        { ...abandoned, copyId: 'id-staging', dataset: 'staging' },
      ],
      leases: [leaseOn('id-leased'), leaseOn('id-staging', { purpose: 'stage' })],
      policy: { maxDatasets: 0 },
    },
    actions: [],
  },
  {
    name: 'removes an abandoned staging once it is old enough',
    input: { copies: [abandoned] },
    actions: ['evict id-abandoned'],
  },
  {
    name: 'keeps a younger one for the task that will come back',
    input: { copies: [abandoned], abandonedAfterMs: 3 * HOUR_MS },
    actions: [],
  },
  {
    name: 'removes an abandoned listing',
    input: { copies: [{ ...abandoned, state: 'reserved' as const, version: null }] },
    actions: ['evict id-abandoned'],
  },
  {
    name: 'removes a staging that nobody works on even if tasks have leases on it: they have nothing to read yet',
    input: { copies: [abandoned], leases: [leaseOn('id-abandoned')] },
    actions: ['evict id-abandoned'],
  },
  {
    name: 'keeps an abandoned staging that an operator locked',
    input: { copies: [{ ...abandoned, lock: { by: 'ops', reason: '', atMs: 0 } }] },
    actions: [],
  },
  {
    name: 'removes what a dead repair left, and leaves one that is under way',
    input: {
      copies: [ready, exampleCopy('other')],
      leases: [leaseOn('id-ready', { purpose: 'transfer' }), leaseOn('id-other')],
      stagingDirectories: ['/cache/staging/repair-id-ready-1', '/cache/staging/repair-id-other-1'],
    },
    actions: ['remove-directory /cache/staging/repair-id-other-1'],
  },
  {
    name: 'evicts an idle version that was replaced',
    input: { copies: [ready, replaced] },
    actions: ['evict old'],
  },
  {
    name: 'keeps a replaced version that a job reads',
    input: { copies: [ready, replaced], leases: [leaseOn('old')] },
    actions: [],
  },
  {
    name: 'finishes interrupted evictions and empties the trash',
    input: { copies: [{ ...ready, state: 'evicting' as const }], trash: ['/cache/trash/1'] },
    actions: ['finish-eviction id-ready', 'empty-trash /cache/trash/1'],
  },
  {
    name: 'forgets a copy whose files are gone',
    input: { copies: [ready], missingCopyIds: new Set(['id-ready']) },
    actions: ['forget-copy id-ready'],
  },
  {
    name: 'removes directories of nobody, and takes complete copies back into the record',
    input: {
      copies: [abandoned],
      abandonedAfterMs: 3 * HOUR_MS,
      stagingDirectories: ['/cache/staging/1', '/cache/staging/2'],
      copyDirectories: [
        found('/cache/copies/x/1', 'complete'),
        found('/cache/copies/x/2', 'half'),
        found('/published/abandoned', 'complete'),
      ],
    },
    actions: [
      'remove-directory /cache/staging/2',
      'adopt-directory /cache/copies/x/1',
      'remove-directory /cache/copies/x/2',
    ],
  },
  {
    name: 'leaves what may have been given out: used, or younger than a lease may be',
    input: {
      copies: [ready],
      copyDirectories: [
        { ...found('/cache/copies/ready/same-young', 'same'), ageMs: 24 * HOUR_MS - 1 },
        { ...found('/cache/copies/ready/same-old', 'same'), ageMs: 24 * HOUR_MS },
        { ...found('/cache/copies/ready/same-used', 'same'), ageMs: 99 * HOUR_MS, users: [7] },
        { ...found('/cache/copies/x/half-used', 'half'), users: [7] },
        { ...found('/cache/copies/x/unread-young', 'unread'), ageMs: 1 },
        { ...found('/cache/copies/x/unread-old', 'unread'), ageMs: 24 * HOUR_MS },
      ],
    },
    actions: [
      'leave /cache/copies/ready/same-young',
      'remove-directory /cache/copies/ready/same-old',
      'leave /cache/copies/ready/same-used',
      'leave /cache/copies/x/half-used',
      'leave /cache/copies/x/unread-young',
      'remove-directory /cache/copies/x/unread-old',
    ],
  },
  {
    name: 'names what is not what it should be',
    input: { copies: [], refused: [{ path: '/cache/trash', reason: 'a symbolic link' }] },
    actions: ['leave /cache/trash'],
  },
  {
    name: 'counts what it deletes anyway as free before it deletes what is used least',
    input: {
      copies: [ready, replaced, exampleCopy('idle', { lastUsedAtMs: 1 })],
      policy: { minFreeBytes: 100 },
      disk: { ...DISK, freeBytes: 0 },
    },
    actions: ['evict old'],
  },
  {
    name: 'counts what an interrupted eviction will free',
    input: {
      copies: [exampleCopy('gone', { state: 'evicting' }), exampleCopy('idle')],
      policy: { minFreeBytes: 100 },
      disk: { ...DISK, freeBytes: 0 },
    },
    actions: ['finish-eviction id-gone'],
  },
  {
    name: 'counts of a staging that was left what it has written',
    input: {
      copies: [{ ...abandoned, writtenBytes: 40 }, exampleCopy('idle')],
      policy: { minFreeBytes: 100 },
      disk: { ...DISK, freeBytes: 0 },
    },
    actions: ['evict id-abandoned', 'evict id-idle'],
  },
  {
    name: 'goes down to the low-water mark, least recently used first',
    input: {
      copies: [
        exampleCopy('a', { lastUsedAtMs: 1 }),
        exampleCopy('b', { lastUsedAtMs: 2 }),
        exampleCopy('c'),
      ],
      policy: { maxPercent: 90, lowWaterPercent: 20 },
    },
    actions: ['evict id-a'],
  },
  {
    name: 'leaves a cache between its low-water mark and nothing alone',
    input: { copies: [ready], policy: { maxPercent: 90, lowWaterPercent: 20 } },
    actions: [],
  },
] satisfies readonly { name: string; input: Partial<CleanUpInput>; actions: readonly string[] }[]) {
  test(`planCleanUp ${name}`, () => {
    const planned = planCleanUp({
      leases: [],
      dead: [],
      stagingDirectories: [],
      copyDirectories: [],
      trash: [],
      dropped: [],
      refused: [],
      missingCopyIds: new Set(),
      publishedDirectoryOf: (copy) => (copy.state === 'staging' ? `/published/${copy.dataset}` : undefined),
      repairPrefixOf: (copy) => `/cache/staging/repair-${copy.copyId}-`,
      policy: {},
      disk: DISK,
      nowMs: NOW_MS,
      abandonedAfterMs: HOUR_MS,
      ...input,
    })
    const shown = planned.map((action) => {
      if ('lease' in action) return `${action.kind} ${action.lease.leaseId}`
      return `${action.kind} ${'path' in action ? action.path : action.copy.copyId}`
    })
    assert.deepEqual(shown, actions)
  })
}

for (const [policy, isOver] of [
  [{}, false],
  [{ maxDatasets: 2 }, false],
  [{ maxDatasets: 1 }, true],
  [{ maxPercent: 20 }, false],
  [{ maxPercent: 19 }, true],
  [{ maxPercent: 50, lowWaterPercent: 19 }, true],
  [{ minFreeBytes: 1000 }, false],
  [{ minFreeBytes: 1001 }, true],
] as const) {
  test(`two copies of 100 bytes on a free disk of 1,000 are ${isOver ? 'over' : 'within'} ${JSON.stringify(policy)}`, () => {
    assert.equal(isOverPolicy({ policy, disk: DISK }, sumUpCopies([ready, replaced])), isOver)
  })
}
