import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Lease } from '../../model/lease.js'
import { findActiveStagers, haveOthersGivenWay, planNodeShare } from './plan-node-share.js'

const NOW_MS = 1_000_000

function stageLease(leaseId: string, createdAtMs: number, renewedAtMs: number): Lease {
  const holder = { kind: 'ttl' } as const
  return {
    ...{ leaseId, copyId: leaseId, purpose: 'stage', task: 't', holder },
    ...{ createdAtMs, renewedAtMs, expiresAtMs: null },
  }
}

test('the shares of a node never exceed its budget together, unless each is at its least of 1', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 200 }), (budget, stagings) => {
      const share = planNodeShare(budget, stagings)
      assert.ok(Number.isInteger(share) && share >= 1)
      if (share > 1) assert.ok(share * stagings <= budget)
      assert.ok((share + 1) * stagings > budget, 'nothing is left that would do for all')
    }),
  )
})

test('a staging that the record does not show yet counts itself', () => {
  assert.equal(planNodeShare(64, 0), 64)
})

test('a stager that was silent for 10 s takes nothing of the budget', () => {
  const working = stageLease('working', 0, NOW_MS - 9_999)
  const silent = stageLease('silent', 0, NOW_MS - 10_000)
  assert.deepEqual(findActiveStagers([working, silent], NOW_MS), [working])
})

const own = stageLease('own', NOW_MS, NOW_MS)
for (const { name, others, expected } of [
  { name: 'alone, there is nobody to wait for', others: [], expected: true },
  {
    name: 'one that has not renewed since is waited for',
    others: [stageLease('a', 0, NOW_MS - 1)],
    expected: false,
  },
  {
    name: 'one that renewed just after is waited for: its requests may still run',
    others: [stageLease('a', 0, NOW_MS + 999)],
    expected: false,
  },
  {
    name: 'one that renewed a second after has given way',
    others: [stageLease('a', 0, NOW_MS + 1000)],
    expected: true,
  },
  {
    name: 'one that came later waits for us, not we for it',
    others: [stageLease('a', NOW_MS + 1, NOW_MS + 1)],
    expected: true,
  },
  {
    name: 'the slowest counts',
    others: [stageLease('a', 0, NOW_MS + 1000), stageLease('b', 0, NOW_MS)],
    expected: false,
  },
]) {
  test(`haveOthersGivenWay: ${name}`, () => {
    assert.equal(haveOthersGivenWay(own, [own, ...others], 1000), expected)
  })
}
