import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Lease } from '../../model/lease.js'
import { type CountedSince, findActiveStagers, lookForOthers, planNodeShare } from './plan-node-share.js'

const NOW_MS = 1_000_000

function stageLease(leaseId: string, createdAtMs: number, renewedAtMs: number): Lease {
  const holder = { kind: 'ttl' } as const
  return {
    leaseId,
    copyId: leaseId,
    purpose: 'stage',
    task: 't',
    holder,
    createdAtMs,
    renewedAtMs,
    expiresAtMs: null,
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
const SINCE_MS = NOW_MS + 10
for (const { name, others, noted = {}, expected } of [
  { name: 'alone, there is nobody to wait for', others: [], expected: true },
  {
    name: 'one that has not renewed since is waited for',
    others: [stageLease('a', 0, SINCE_MS)],
    expected: false,
  },
  {
    name: 'one that renewed for the first time is waited for: its requests may still run',
    others: [stageLease('a', 0, SINCE_MS + 5000)],
    expected: false,
  },
  {
    name: 'one that renewed again has given way',
    others: [stageLease('a', 0, SINCE_MS + 5000)],
    noted: { a: SINCE_MS + 1 },
    expected: true,
  },
  {
    name: 'one that renewed again at once is still waited for',
    others: [stageLease('a', 0, SINCE_MS + 500)],
    noted: { a: SINCE_MS + 1 },
    expected: false,
  },
  {
    name: 'one that came later waits for us, not we for it',
    others: [stageLease('a', NOW_MS + 1, NOW_MS + 1)],
    expected: true,
  },
  {
    name: 'the slowest counts',
    others: [stageLease('a', 0, SINCE_MS + 1000), stageLease('b', 0, SINCE_MS + 1)],
    noted: { a: SINCE_MS + 1, b: SINCE_MS + 1 },
    expected: false,
  },
]) {
  test(`lookForOthers: ${name}`, () => {
    const look = lookForOthers({
      own,
      sinceMs: SINCE_MS,
      active: [own, ...others],
      noted: new Map(Object.entries(noted)),
    })
    assert.equal(look.haveMadeRoom, expected)
  })
}

test('lookForOthers notes the first renewal, and keeps to it', () => {
  const look = (renewedAtMs: number, noted: CountedSince) =>
    lookForOthers({ own, sinceMs: SINCE_MS, active: [own, stageLease('a', 0, renewedAtMs)], noted }).noted
  assert.deepEqual(look(SINCE_MS, new Map()), new Map())
  const first = look(SINCE_MS + 7, new Map())
  assert.deepEqual(first, new Map([['a', SINCE_MS + 7]]))
  assert.deepEqual(look(SINCE_MS + 8, first), first)
})
