import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CopyUse } from '../model/copy.js'
import { exampleCopy } from '../testing/example-copies.js'
import { standingOf, sumUpCopies } from './copy-sums.js'

test('copies that policy treats alike are summed up, each byte and inode once', () => {
  const copies = [
    exampleCopy('a', { chargedBytes: 100, chargedInodes: 10, writtenBytes: 100 }),
    exampleCopy('b', { chargedBytes: 50, chargedInodes: 5, writtenBytes: 20 }),
    exampleCopy('c', { chargedBytes: 5, chargedInodes: 1, writtenBytes: 9 }),
  ]
  const [sum, ...others] = sumUpCopies(copies)
  assert.deepEqual(others, [])
  assert.deepEqual(
    { ...sum },
    {
      ...{ node: 'node-a', state: 'ready', isLocked: false, hasSource: true, isUsed: false },
      ...{ isBeingStaged: false, isStriped: false, parties: undefined },
      ...{ copies: 3, chargedBytes: 155, chargedInodes: 16, unwrittenBytes: 30 },
    },
  )
})

for (const { name, change } of [
  { name: 'another node', change: { node: 'node-b' } },
  { name: 'another state', change: { state: 'staging' } },
  { name: 'a lock', change: { lock: { reason: 'kept', by: 'ada', atMs: 1 } as unknown as CopyUse['lock'] } },
  { name: 'no source', change: { source: null } },
  { name: 'a lease', change: { referenceCount: 1 } },
  { name: 'a stager', change: { isBeingStaged: true } },
  { name: 'a stripe', change: { stripe: { index: 0, nodes: ['node-a', 'node-b'] } } },
  { name: 'other parties', change: { parties: ['user:ada'] } },
] satisfies { name: string; change: Partial<CopyUse> }[])
  test(`a copy with ${name} is summed up apart`, () => {
    const copies = [exampleCopy('a'), exampleCopy('b', change)]
    assert.deepEqual(
      sumUpCopies(copies).map((sum) => [sum.node, sum.state, sum.copies]),
      copies.map(({ node, state }) => [node, state, 1]),
    )
  })

test('one lease is enough to be used', () => {
  assert.equal(standingOf(exampleCopy('a', { referenceCount: 1 })).isUsed, true)
})
