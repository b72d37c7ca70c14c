import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { CopyUse } from '../model/copy.js'
import type { CachePolicy } from '../model/policy.js'
import { exampleCopy } from '../testing/example-copies.js'
import { planAdmission } from './plan-admission.js'

const seed = Number(process.env.DSC_TEST_SEED ?? Date.now() % 1_000_000_007)
const CAPACITY = 1000
const PARTIES = ['user:a', 'group:b', 'account:c', undefined] as const

/** An event on a node; they happen one after the other. */
type Step =
  | { readonly kind: 'ask'; readonly by: number; readonly bytes: number; readonly isPrefetch: boolean }
  | { readonly kind: 'use'; readonly pick: number; readonly by: number }
  | { readonly kind: 'release'; readonly pick: number }

const party = fc.nat({ max: PARTIES.length - 1 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      by: party,
      // Few enough bytes that datasets run out first, or many enough that bytes do.
      bytes: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 500 })),
      isPrefetch: fc.constantFrom(false, false, false, true),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('use' as const), pick: fc.nat(), by: party }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('release' as const), pick: fc.nat() }) },
)
const policy = fc
  .record({
    percents: fc.array(fc.integer({ min: 10, max: 33 }), { minLength: 3, maxLength: 3 }),
    maxDatasets: fc.option(fc.integer({ min: 10, max: 14 }), { nil: undefined }),
    maxPercent: fc.constantFrom(60, 100),
  })
  .map(
    ({ percents, maxDatasets, maxPercent }): CachePolicy => ({
      maxPercent,
      maxDatasets,
      shares: percents.map((percent, index) => ({ party: PARTIES[index]!, percent })),
    }),
  )

/** Shares defined as sums over a list, without using the planner. */
class NaiveNode {
  readonly policy: CachePolicy
  copies: CopyUse[] = []
  #made = 0

  constructor(given: CachePolicy) {
    this.policy = given
  }

  get limit() {
    return Math.floor((CAPACITY * this.policy.maxPercent!) / 100)
  }

  get slots() {
    return this.policy.maxDatasets ?? Number.POSITIVE_INFINITY
  }

  guarantee(by: string | undefined) {
    const percent = this.policy.shares!.find((share) => share.party === by)?.percent ?? 0
    return {
      bytes: Math.floor((this.limit * percent) / 100),
      slots: percent === 0 ? 0 : Math.floor((this.slots * percent) / 100 + 1e-9),
    }
  }

  takenBy(by: string | undefined, among = this.copies) {
    const own = among.filter(({ parties }) => parties?.[0] === by)
    return { bytes: own.reduce((sum, copy) => sum + copy.chargedBytes, 0), slots: own.length }
  }

  borrows(by: string | undefined, among = this.copies) {
    const [taken, guaranteed] = [this.takenBy(by, among), this.guarantee(by)]
    return by === undefined || taken.bytes > guaranteed.bytes || taken.slots > guaranteed.slots
  }

  /** Whether an `ask` must succeed: it stays within its guarantee, and no borrower's lease holds the space it needs. */
  isEntitled(by: string | undefined, bytes: number) {
    const [taken, guaranteed] = [this.takenBy(by), this.guarantee(by)]
    const isWithin = taken.bytes + bytes <= guaranteed.bytes && taken.slots + 1 <= guaranteed.slots
    const isBorrowerAtWork = this.copies.some(
      ({ parties, referenceCount }) => referenceCount > 0 && this.borrows(parties?.[0]),
    )
    return isWithin && !isBorrowerAtWork
  }

  ask(by: string | undefined, bytes: number, isPrefetch: boolean) {
    this.#made += 1
    const asked = exampleCopy(`d${this.#made}`, {
      state: 'reserved',
      chargedBytes: 0,
      lastUsedAtMs: this.#made,
      ...(by !== undefined && { parties: [by] }),
    })
    const used = this.copies.reduce((sum, copy) => sum + copy.chargedBytes, 0)
    const admission = planAdmission({
      policy: this.policy,
      disk: { capacityBytes: CAPACITY, freeBytes: CAPACITY - used, inodesTotal: 0, inodesFree: 0 },
      copies: [...this.copies, asked],
      request: { datasets: 1, bytes, inodes: 0 },
      requestCopyId: asked.copyId,
      isPrefetch,
    })
    const copy = {
      ...asked,
      state: 'ready' as const,
      chargedBytes: bytes,
      writtenBytes: bytes,
      referenceCount: 1,
    }
    return { admission, copy }
  }
}

/** Checks one admission against the definition of shares, and applies it. Returns whether it was admitted. */
function askAndCheck(
  node: NaiveNode,
  by: string | undefined,
  { bytes, isPrefetch }: Extract<Step, { kind: 'ask' }>,
) {
  const isEntitled = node.isEntitled(by, bytes) && !isPrefetch
  const { admission, copy } = node.ask(by, bytes, isPrefetch)
  if (admission.outcome !== 'admit') {
    assert.ok(!isEntitled, `${by} is refused ${bytes} within its guarantee`)
    return false
  }
  for (const { copy: victim } of admission.plan.victims) {
    const owner = victim.parties?.[0]
    const held = node.copies.find(({ copyId }) => copyId === victim.copyId)
    assert.equal(held?.referenceCount, 0, 'a job waits for it or reads it')
    const isOwn = owner !== undefined && owner === by && !isPrefetch
    assert.ok(isOwn || node.borrows(owner), `${owner} loses to ${by} what is guaranteed to it`)
    node.copies = node.copies.filter(({ copyId }) => copyId !== victim.copyId)
  }
  node.copies.push(copy)
  const bytesInAll = node.copies.reduce((sum, { chargedBytes }) => sum + chargedBytes, 0)
  assert.ok(bytesInAll <= node.limit && node.copies.length <= node.slots, 'a bound is passed')
  return true
}

function play(node: NaiveNode, done: Step) {
  if (done.kind === 'ask') return askAndCheck(node, PARTIES[done.by], done)
  const copy = node.copies[done.pick % Math.max(1, node.copies.length)]
  if (copy === undefined) return undefined
  const by = done.kind === 'use' ? PARTIES[done.by] : undefined
  const changed =
    done.kind === 'release'
      ? { ...copy, referenceCount: Math.max(0, copy.referenceCount - 1) }
      : { ...copy, referenceCount: copy.referenceCount + 1, ...(by !== undefined && { parties: [by] }) }
  node.copies = node.copies.map((each) => (each.copyId === copy.copyId ? changed : each))
  return undefined
}

test(`over random histories no bound is passed and no share loses what it is guaranteed (DSC_TEST_SEED=${seed})`, () => {
  const seen = { admitted: 0, refused: 0 }
  fc.assert(
    fc.property(policy, fc.array(step, { minLength: 5, maxLength: 60 }), (given, steps) => {
      const node = new NaiveNode(given)
      for (const done of steps) {
        const outcome = play(node, done)
        if (outcome !== undefined) seen[outcome ? 'admitted' : 'refused'] += 1
      }
    }),
    { seed, numRuns: 1000 },
  )
  assert.ok(seen.admitted > 1000 && seen.refused > 300, JSON.stringify(seen))
})

test(`after any history a share gets all that it is guaranteed once borrowers are idle (DSC_TEST_SEED=${seed})`, () => {
  fc.assert(
    fc.property(policy, fc.array(step, { maxLength: 60 }), fc.nat({ max: 2 }), (given, steps, index) => {
      const node = new NaiveNode(given)
      for (const done of steps) play(node, done)
      const by = PARTIES[index]!
      node.copies = node.copies.map((copy) =>
        node.borrows(copy.parties?.[0]) ? { ...copy, referenceCount: 0 } : copy,
      )
      const [taken, guaranteed] = [node.takenBy(by), node.guarantee(by)]
      const bytes = guaranteed.bytes - taken.bytes
      if (bytes <= 0 || taken.slots >= guaranteed.slots) return
      assert.equal(node.ask(by, bytes, false).admission.outcome, 'admit')
    }),
    { seed, numRuns: 1000 },
  )
})
