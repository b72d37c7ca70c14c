import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CopyUse } from '../model/copy.js'
import type { CachePolicy } from '../model/policy.js'
import { DISK, exampleCopy, NOW_MS } from '../testing/example-copies.js'
import { sumUpCopies } from './copy-sums.js'
import { planAdmission } from './plan-admission.js'
import { measureLoad, planEviction } from './plan-eviction.js'
import { findShare, measureShares } from './shares.js'

/** For a disk of 1,000 bytes, in the same order as the age of the copies: lower ages go later. */
const POLICY: CachePolicy = {
  maxPercent: 100,
  shares: [
    { party: 'group:vision', percent: 50 },
    { party: 'user:ada', percent: 30 },
  ],
}

function copyOf(party: string | undefined, dataset: string, changes: Partial<CopyUse> = {}): CopyUse {
  return exampleCopy(dataset, { ...(party && { parties: ['user:someone', party] }), ...changes })
}
const [vision, ada] = ['group:vision', 'user:ada']
const LEASED = { referenceCount: 1 }
const aged = (hours: number) => ({ lastUsedAtMs: NOW_MS - hours * 3_600_000 })

for (const { name, copies, bytes, party, isPrefetch, maxDatasets, victims } of [
  {
    name: 'takes from a borrower, though the asking share has what was used longer ago',
    copies: [
      copyOf(vision, 'old', { chargedBytes: 300, ...aged(9) }),
      copyOf(ada, 'ada', { chargedBytes: 600, ...aged(1) }),
    ],
    bytes: 200,
    party: vision,
    victims: ['ada'],
  },
  {
    name: 'takes from who has no share before it takes from the share that asks',
    copies: [
      copyOf(vision, 'old', { chargedBytes: 400, ...aged(9) }),
      copyOf(undefined, 'nobody', { chargedBytes: 500, ...aged(1) }),
    ],
    bytes: 200,
    party: vision,
    victims: ['nobody'],
  },
  {
    name: 'takes the least recently used of the asking share where nobody borrows',
    copies: [
      copyOf(vision, 'newer', { chargedBytes: 200, ...aged(2) }),
      copyOf(vision, 'older', { chargedBytes: 300, ...aged(3) }),
      copyOf(ada, 'ada', { chargedBytes: 300, ...aged(9) }),
    ],
    bytes: 400,
    party: vision,
    victims: ['older'],
  },
  {
    name: 'refuses who has no share what others are guaranteed',
    copies: [copyOf(vision, 'v', { chargedBytes: 500 }), copyOf(ada, 'a', { chargedBytes: 300 })],
    bytes: 300,
    party: undefined,
    victims: 'refused',
  },
  {
    name: 'stops taking from a share once it borrows no more',
    copies: [
      copyOf(ada, 'first', { chargedBytes: 200, ...aged(9) }),
      copyOf(ada, 'second', { chargedBytes: 200, ...aged(8) }),
      copyOf(vision, 'own', { chargedBytes: 500, ...aged(1) }),
    ],
    bytes: 400,
    party: vision,
    victims: ['first', 'own'],
  },
  {
    name: 'never takes what is leased, though it is borrowed',
    copies: [copyOf(ada, 'ada', { chargedBytes: 900, ...LEASED })],
    bytes: 200,
    party: vision,
    victims: 'refused',
  },
  {
    name: 'gives a prefetch what is borrowed',
    copies: [copyOf(undefined, 'nobody', { chargedBytes: 900 })],
    bytes: 500,
    party: vision,
    isPrefetch: true,
    victims: ['nobody'],
  },
  {
    name: 'gives a prefetch nothing that is guaranteed, not even to the share that prefetches',
    copies: [copyOf(vision, 'own', { chargedBytes: 500 }), copyOf(ada, 'a', { chargedBytes: 300 })],
    bytes: 300,
    party: vision,
    isPrefetch: true,
    victims: 'refused',
  },
  {
    name: 'takes from a share that has one dataset more than its part of maxDatasets',
    copies: [
      copyOf(undefined, 'in use', { chargedBytes: 10, ...LEASED }),
      copyOf(vision, 'own', { chargedBytes: 10, ...aged(9) }),
      copyOf(ada, 'first', { chargedBytes: 10, ...aged(2) }),
      copyOf(ada, 'second', { chargedBytes: 10, ...aged(1) }),
    ],
    bytes: 10,
    party: vision,
    maxDatasets: 4, // 30 % of it is 1.2, which guarantees one
    victims: ['first'],
  },
  {
    name: 'leaves a share as many datasets as its part of maxDatasets',
    copies: [
      copyOf(undefined, 'in use', { chargedBytes: 10, ...LEASED }),
      copyOf(vision, 'older', { chargedBytes: 10, ...aged(2) }),
      copyOf(vision, 'newer', { chargedBytes: 10, ...aged(1) }),
      copyOf(ada, 'ada', { chargedBytes: 10, ...aged(9) }),
    ],
    bytes: 10,
    party: vision,
    maxDatasets: 4,
    victims: ['older'],
  },
] as readonly {
  name: string
  copies: readonly CopyUse[]
  bytes: number
  party: string | undefined
  isPrefetch?: boolean
  maxDatasets?: number
  victims: readonly string[] | 'refused'
}[]) {
  test(`admission with shares ${name}`, () => {
    const used = copies.reduce((sum, { chargedBytes }) => sum + chargedBytes, 0)
    const asked = copyOf(party, 'asked', { state: 'reserved', chargedBytes: 0 })
    const admission = planAdmission({
      policy: { ...POLICY, maxDatasets },
      disk: { ...DISK, freeBytes: DISK.capacityBytes - used },
      copies: [...copies, asked],
      request: { datasets: 1, bytes, inodes: 0 },
      requestCopyId: asked.copyId,
      isPrefetch,
    })
    if (victims === 'refused') return assert.equal(admission.outcome, 'refuse')
    assert.ok(admission.outcome === 'admit', admission.outcome)
    assert.deepEqual(
      admission.plan.victims.map(({ copy }) => copy.dataset),
      victims,
    )
  })
}

test('a victim says whose borrowing ends', () => {
  const copies = [copyOf(ada, 'ada', { chargedBytes: 600 })]
  const { victims } = planEviction({
    policy: POLICY,
    disk: { ...DISK, freeBytes: 400 },
    copies,
    request: { datasets: 1, bytes: 500, inodes: 0 },
    parties: [vision!],
  })
  assert.equal(victims[0]?.reason, 'least recently used, borrowed by user:ada')
})

test('a cleanup, which asks for nobody, takes what is borrowed, and where that is in use whatever is left', () => {
  const clean = (borrowed: Partial<CopyUse>) =>
    planEviction({
      policy: { ...POLICY, maxPercent: 50 },
      disk: { ...DISK, freeBytes: 300 },
      copies: [
        copyOf(ada, 'guaranteed', { chargedBytes: 100, ...aged(9) }),
        copyOf(undefined, 'borrowed', { chargedBytes: 600, ...aged(1), ...borrowed }),
      ],
      request: { datasets: 0, bytes: 0, inodes: 0 },
      accept: 'part',
    }).victims.map(({ copy }) => copy.dataset)
  assert.deepEqual(clean({}), ['borrowed'])
  assert.deepEqual(clean(LEASED), ['guaranteed'])
})

test('a task of several parties counts for the share that the policy names first', () => {
  const { shares } = POLICY
  assert.equal(findShare(shares, ['user:ada', 'group:vision']), 'group:vision')
  assert.equal(findShare(shares, ['user:bob']), null)
  assert.equal(findShare(undefined, ['user:ada']), null)
})

test('shares are of what copies may take beside files of others and what nobody may evict', () => {
  const copies = [
    copyOf(undefined, 'locked', { chargedBytes: 100, lock: { by: 'ops', reason: 'keep', atMs: 0 } }),
    copyOf(ada, 'ada', { chargedBytes: 200 }),
  ]
  const sums = sumUpCopies(copies)
  const disk = { ...DISK, freeBytes: 500 } // others take 200
  const [first, second, rest] = measureShares({ ...POLICY, minFreeBytes: 100 }, disk, {
    sums,
    load: measureLoad(sums),
  })
  // 1000 - 200 of others - 100 to keep free - 100 locked
  assert.equal(first?.guaranteedBytes, 300)
  assert.deepEqual(
    [second?.guaranteedBytes, second?.usedBytes, second?.borrowedBytes, second?.guaranteedDatasets],
    [180, 200, 20, null],
  )
  assert.deepEqual([rest?.party, rest?.percent, rest?.usedBytes, rest?.borrowedBytes], [null, 0, 100, 100])
})

for (const { percent, maxDatasets, guaranteed } of [
  { percent: 50, maxDatasets: 4, guaranteed: 2 },
  { percent: 30, maxDatasets: 4, guaranteed: 1 },
  { percent: 29, maxDatasets: 100, guaranteed: 29 }, // 100 * 0.29 is 28.999999999999996
  { percent: 10, maxDatasets: 9, guaranteed: 0 },
]) {
  test(`${percent} % of ${maxDatasets} datasets guarantee ${guaranteed}, whole datasets only`, () => {
    const policy = { shares: [{ party: 'user:ada', percent }], maxDatasets }
    const held = { sums: [], load: measureLoad([]) }
    assert.equal(measureShares(policy, DISK, held)[0]?.guaranteedDatasets, guaranteed)
  })
}
