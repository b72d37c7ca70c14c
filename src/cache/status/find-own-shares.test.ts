import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeEntry } from '../../model/node.js'
import { sumUpCopies } from '../../policy/copy-sums.js'
import { exampleCopy } from '../../testing/example-copies.js'
import { findOwnShares } from './find-own-shares.js'

const GIB = 1024 ** 3
const SHARES = [
  { party: 'group:vision', percent: 50 },
  { party: 'user:ada', percent: 10 },
]

/** A node of 100 GiB, all free except for its copies. */
const node = (name: string, freeGib: number): NodeEntry => ({
  node: name,
  cacheRoot: '/nvme/dsc',
  policy: { maxPercent: 100, shares: SHARES },
  disk: { capacityBytes: 100 * GIB, freeBytes: freeGib * GIB, inodesTotal: 0, inodesFree: 0 },
  seenAtMs: 0,
})

const COPIES = [
  exampleCopy('flowers', { node: 'gpu-1', chargedBytes: 30 * GIB, parties: ['group:vision'] }),
  exampleCopy('birds', { node: 'gpu-2', chargedBytes: 60 * GIB, parties: ['group:vision'] }),
]
const record = {
  sumCopies: async ({ node: name }: { node?: string }) =>
    sumUpCopies(COPIES.filter((copy) => copy.node === name)),
  nowMs: () => 0,
} as unknown as Parameters<typeof findOwnShares>[0]

test('what is left of the first share that is theirs is told of each node that has shares', async () => {
  const nodes = [node('gpu-1', 70), node('gpu-2', 40), { ...node('gpu-3', 100), policy: { maxPercent: 100 } }]
  const shares = await findOwnShares(record, nodes, {
    parties: ['user:ada', 'group:vision'],
    preferred: ['gpu-1'],
  })
  assert.deepEqual(
    shares.map(({ node: name, party, usedBytes, leftBytes }) => [name, party, usedBytes, leftBytes]),
    [
      ['gpu-1', 'group:vision', 30 * GIB, 20 * GIB],
      ['gpu-2', 'group:vision', 60 * GIB, 0],
    ],
  )
})

test('a user without a share learns that', async () => {
  const [share] = await findOwnShares(record, [node('gpu-1', 70)], { parties: ['user:bob'], preferred: [] })
  assert.equal(share?.party, null)
  assert.equal(share?.leftBytes, 0)
})

test('of many nodes those that are named are measured, and those with most free space', async () => {
  const nodes = Array.from({ length: 80 }, (_, at) => node(`n${at}`, at))
  const shares = await findOwnShares(record, nodes, { parties: ['user:ada'], preferred: ['n0'] })
  const names = shares.map(({ node: name }) => name)
  assert.equal(names.length, 50)
  assert.ok(names.includes('n0') && names.includes('n79') && !names.includes('n1'))
})
