import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CopyUse } from '../../model/copy.js'
import type { Limit, Shortfall } from '../../policy/quota.js'
import { exampleCopy } from '../../testing/example-copies.js'
import { chooseFreeHint, chooseHint, describeHeld, explainRefusal } from './explain-refusal.js'
import { hideGuarded } from './hide-guarded.js'

const DISK = { capacityBytes: 100, freeBytes: 30, inodesTotal: 0, inodesFree: 0 }
const LOCK = { by: 'ops', reason: 'test', atMs: 0 }

function missing(limit: Limit, amounts: Partial<Shortfall> = {}): Shortfall {
  return { limit, allowed: 10, taken: 0, needed: 20, missing: 10, ...amounts }
}

function held(changes: Partial<CopyUse>): CopyUse {
  return exampleCopy('birds', { chargedBytes: 10, chargedInodes: 3, ...changes })
}

for (const { name, shortfalls, holders = [], minFreeBytes = 0, hint } of [
  {
    name: 'raises the limit that is in the way',
    shortfalls: [missing('maxPercent')],
    hint: /^raise cache\.maxPercent/,
  },
  {
    name: 'raises no limit of a disk that is too full',
    shortfalls: [missing('maxPercent'), missing('minFree')],
    hint: /^free space/,
  },
  {
    name: 'raises no limit where inodes are missing',
    shortfalls: [missing('maxDatasets'), missing('inodes')],
    hint: /^free space/,
  },
  {
    name: 'lowers minFree where the empty disk would not have it to spare',
    shortfalls: [missing('minFree', { needed: 20, missing: 90 })],
    minFreeBytes: 81,
    hint: /^lower cache\.minFree/,
  },
  {
    name: 'frees space where the empty disk would have it to spare',
    shortfalls: [missing('minFree', { needed: 20, missing: 70 })],
    minFreeBytes: 80,
    hint: /^free space/,
  },
  {
    name: 'raises no limit of a disk that is smaller than the dataset',
    shortfalls: [missing('maxPercent', { needed: 101 }), missing('minFree', { needed: 101 })],
    hint: /larger disk.*--stripe/,
  },
  {
    name: 'unlocks what would be enough',
    shortfalls: [missing('maxPercent')],
    holders: [held({ lock: LOCK })],
    hint: /^dsc unlock birds$/,
  },
  {
    name: 'waits for leases on what would be enough',
    shortfalls: [missing('maxDatasets', { missing: 1 })],
    holders: [held({ referenceCount: 1 })],
    hint: /^dsc leases --dataset birds/,
  },
  {
    name: 'unlocks nothing that would not be enough',
    shortfalls: [missing('maxPercent', { missing: 11 })],
    holders: [held({ lock: LOCK })],
    hint: /^raise cache\.maxPercent/,
  },
] satisfies readonly {
  name: string
  shortfalls: readonly Shortfall[]
  holders?: readonly CopyUse[]
  minFreeBytes?: number
  hint: RegExp
}[]) {
  test(`the hint of a refusal ${name}`, () => {
    assert.match(chooseHint({ shortfalls, holders, policy: { minFreeBytes }, disk: DISK }), hint)
  })
}

test('the hint where too little can be freed is a command that frees it', () => {
  for (const [evictableBytes, size] of [
    [4096, '4KiB'],
    [3 * 2 ** 29, '1.5GiB'],
    [2 ** 40 + 4096, '1073741828KiB'],
    [4097, '4097'],
  ] as const)
    assert.match(
      chooseFreeHint({ evictableBytes, evictableCopies: 1 }),
      new RegExp(`^dsc evict --free ${size} `),
    )
  assert.match(chooseFreeHint({ evictableBytes: 0, evictableCopies: 0 }), /^dsc status /)
})

test('a copy that only some may read is in the way without its name, its tasks and its lock', () => {
  const locked = held({ lock: LOCK, chargedBytes: 1024 })
  const declared = [{ name: 'birds', source: 's3://b/', include: [], exclude: [], readers: ['user:ada'] }]
  const [hidden] = hideGuarded({ declared }, [locked])
  assert.equal(describeHeld(hidden!, [], 0), 'a dataset with readers 1 KiB, in use')
  const shortfalls = [missing('maxPercent')]
  assert.match(chooseHint({ shortfalls, holders: [hidden!], policy: {}, disk: DISK }), /^raise cache/)
  const [shown] = hideGuarded({ declared: [] }, [locked])
  assert.match(describeHeld(shown!, [], 0), /^birds 1 KiB, locked by ops: test/)
})

test('a refusal says of each limit what it allows and what is short', () => {
  const shortfalls = [
    missing('maxDatasets', { allowed: 2, taken: 2 }),
    missing('maxPercent', { allowed: 4096, taken: 3072, missing: 1024 }),
    missing('minFree', { allowed: 2048, taken: 512, missing: 7168 }),
    missing('inodes', { allowed: 5, taken: 1, needed: 6 }),
  ]
  const plan = { freedBytes: 0, victims: [], shortfalls, evictableBytes: 0, evictableCopies: 0 }
  const { message } = explainRefusal({
    ...{ dataset: 'birds', node: 'n1', request: { datasets: 1, bytes: 8192, inodes: 6 }, plan, holders: [] },
    ...{ shares: [], leases: [], policy: {}, disk: DISK, nowMs: 0 },
  })
  const [first, ...rest] = message.split('\n')
  assert.deepEqual(first!.split('; '), [
    'no room for birds on node n1: it needs 8 KiB',
    'maxDatasets allows 2 and 2 are taken',
    'maxPercent allows 4 KiB, copies use 3 KiB: 1 KiB short',
    'the disk has 2 KiB free above minFree, 512 B reserved for other downloads: 7 KiB short',
    'it needs 6 inodes, and 5 are free (1 reserved)',
  ])
  assert.deepEqual(rest, ['  evictable: nothing', '  nothing was deleted'])
})
