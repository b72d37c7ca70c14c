import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { CopyUse } from '../model/copy.js'
import type { CachePolicy, DiskUsage } from '../model/policy.js'
import { exampleCopy, NOW_MS } from '../testing/example-copies.js'
import { sumUpCopies } from './copy-sums.js'
import { planAdmission } from './plan-admission.js'
import { findCandidates, measureLoad, planEviction } from './plan-eviction.js'
import { findShortfalls, quotaBytes, type SpaceRequest } from './quota.js'

const seed = Number(process.env.DSC_TEST_SEED ?? Date.now() % 1_000_000_007)
const OPTIONS = { seed, numRuns: 2000 }
const name = (title: string) => `${title} (DSC_TEST_SEED=${seed})`

const bytes = fc.oneof(
  { weight: 29, arbitrary: fc.nat({ max: 400 }) },
  { weight: 1, arbitrary: fc.nat({ max: 2 ** 50 }) },
)
const disk: fc.Arbitrary<DiskUsage> = fc
  .record({
    capacityBytes: fc.oneof(fc.nat({ max: 4000 }), bytes),
    usedPercent: fc.constantFrom(0, 50, 90, 99),
    inodesTotal: fc.constantFrom(0, 100, 3000),
    usedInodes: fc.nat({ max: 1000 }),
  })
  .map(({ capacityBytes, usedPercent, inodesTotal, usedInodes }) => ({
    capacityBytes,
    freeBytes: Math.floor((capacityBytes * (100 - usedPercent)) / 100),
    inodesTotal,
    inodesFree: Math.max(0, inodesTotal - usedInodes),
  }))
const policy = fc.record(
  {
    maxDatasets: fc.nat({ max: 8 }),
    maxPercent: fc.double({ min: -20, max: 150, noNaN: true }),
    minFreeBytes: bytes,
  },
  { requiredKeys: [] },
) as fc.Arbitrary<CachePolicy>
const request: fc.Arbitrary<SpaceRequest> = fc.record({
  datasets: fc.nat({ max: 1 }),
  bytes,
  inodes: fc.nat({ max: 300 }),
})
const rarely = fc.constantFrom(false, false, false, false, true)
const copies = fc
  .array(
    fc.record({
      dataset: fc.constantFrom('a', 'b', 'c'),
      state: fc.constantFrom('reserved', 'staging', 'ready', 'ready', 'ready', 'ready', 'evicting'),
      chargedBytes: bytes,
      chargedInodes: fc.nat({ max: 500 }),
      writtenBytes: bytes,
      isLocked: rarely,
      isAdopted: rarely,
      referenceCount: fc.constantFrom(0, 0, 0, 1, 3),
      isBeingStaged: rarely,
      ageMs: fc.nat({ max: 5 }),
    }),
    { maxLength: 8 },
  )
  .map((rows) =>
    rows.map(
      ({ isLocked, isAdopted, ageMs, ...row }, index): CopyUse =>
        exampleCopy(row.dataset, {
          ...row,
          copyId: `copy-${index}`,
          version: `v${index}`,
          lock: isLocked ? { by: 'ops', reason: 'keep', atMs: 0 } : null,
          ...(isAdopted ? { source: null } : {}),
          lastUsedAtMs: NOW_MS - ageMs,
          readyAtMs: NOW_MS - ageMs,
        }),
    ),
  )
const input = fc.record({ policy, disk, copies, request, accept: fc.constantFrom('all', 'part') })
/** The only limit is the number of datasets: an eviction is often needed and often enough. */
const crowded = fc.record({
  policy: fc.record({ maxDatasets: fc.nat({ max: 8 }) }),
  disk: fc.constant({ capacityBytes: 2 ** 53 - 1, freeBytes: 2 ** 53 - 1, inodesTotal: 0, inodesFree: 0 }),
  copies,
  request,
})
const often = fc.oneof(input, crowded)

test(name('a quota is never negative and never above the capacity, whatever the percentage'), () => {
  fc.assert(
    fc.property(policy, disk, (given, found) => {
      const quota = quotaBytes(given, found)
      if (given.maxPercent === undefined) return assert.equal(quota, Number.POSITIVE_INFINITY)
      assert.ok(Number.isInteger(quota) && quota >= 0 && quota <= found.capacityBytes, `quota ${quota}`)
    }),
    OPTIONS,
  )
})

test(
  name('a shortfall is positive, its amounts are never negative, and it is exactly what is missing'),
  () => {
    fc.assert(
      fc.property(policy, disk, copies, request, (given, found, present, asked) => {
        const load = measureLoad(sumUpCopies(present))
        for (const shortfall of findShortfalls({ policy: given, disk: found, load, request: asked })) {
          const { limit, allowed, taken, needed, missing } = shortfall
          assert.ok(allowed >= 0 && taken >= 0 && needed >= 0 && missing > 0, JSON.stringify(shortfall))
          assert.ok(missing >= taken + needed - allowed, JSON.stringify(shortfall))
          if (limit === 'minFree' || limit === 'maxPercent') assert.ok(allowed <= found.capacityBytes)
        }
        for (const amount of Object.values(load)) assert.ok(amount >= 0)
      }),
      OPTIONS,
    )
  },
)

test(
  name('an eviction never takes a copy that is leased, locked, being staged, without source or asked for'),
  () => {
    fc.assert(
      fc.property(input, ({ accept, ...given }) => {
        const plan = planEviction({ ...given, accept: accept as 'all' | 'part', requestCopyId: 'copy-0' })
        for (const { copy } of plan.victims) {
          const use = given.copies.find(({ copyId }) => copyId === copy.copyId)!
          assert.equal(use.referenceCount, 0)
          assert.equal(use.isBeingStaged, false)
          assert.equal(use.lock, null)
          assert.notEqual(use.source, null)
          assert.notEqual(use.copyId, 'copy-0')
          assert.ok(use.state === 'ready' || use.state === 'staging')
        }
        assert.equal(new Set(plan.victims.map(({ copy }) => copy.copyId)).size, plan.victims.length)
        assert.ok(plan.freedBytes >= 0 && plan.freedBytes <= plan.evictableBytes)
      }),
      OPTIONS,
    )
  },
)

test(
  name('an eviction is enough or nothing, and is found whenever evicting everything permitted is enough'),
  () => {
    const seen = { enough: 0, nothing: 0 }
    fc.assert(
      fc.property(often, ({ policy: given, disk: found, copies: present, request: asked }) => {
        const plan = planEviction({ policy: given, disk: found, copies: present, request: asked })
        const after = (gone: ReadonlySet<string>) =>
          findShortfalls({
            policy: given,
            disk: freeDisk(found, present, gone),
            load: measureLoad(sumUpCopies(without(present, gone))),
            request: asked,
          })
        const victims = new Set(plan.victims.map(({ copy }) => copy.copyId))
        if (plan.shortfalls.length === 0) {
          assert.deepEqual(after(victims), [])
          if (victims.size > 0) seen.enough += 1
        } else {
          assert.equal(victims.size, 0)
          const all = new Set(findCandidates(present).map(({ copy }) => copy.copyId))
          assert.notDeepEqual(after(all), [])
          seen.nothing += 1
        }
      }),
      OPTIONS,
    )
    assert.ok(seen.enough > 20 && seen.nothing > 20, JSON.stringify(seen))
  },
)

test(
  name('an admission that evicts nothing changes no limit, and a refusal names only what cannot go'),
  () => {
    fc.assert(
      fc.property(input, ({ accept: _, ...given }) => {
        const admission = planAdmission({ ...given, requestCopyId: 'copy-0' })
        const isEvicting = given.copies.some(({ state }) => state === 'evicting')
        assert.equal(admission.outcome === 'wait', isEvicting)
        if (admission.outcome !== 'refuse') return
        assert.deepEqual(admission.plan.victims, [])
        const evictable = new Set(findCandidates(given.copies).map(({ copy }) => copy.copyId))
        assert.ok(!admission.holders.some(({ copyId }) => evictable.has(copyId)))
      }),
      OPTIONS,
    )
  },
)

function without(present: readonly CopyUse[], gone: ReadonlySet<string>): readonly CopyUse[] {
  return present.filter(({ copyId }) => !gone.has(copyId))
}

/** The disk without these copies: a staging frees its written bytes, a ready copy its charged bytes. */
function freeDisk(found: DiskUsage, present: readonly CopyUse[], gone: ReadonlySet<string>): DiskUsage {
  let { freeBytes, inodesFree } = found
  for (const copy of present) {
    if (!gone.has(copy.copyId)) continue
    freeBytes = Math.min(
      found.capacityBytes,
      freeBytes + (copy.state === 'staging' ? copy.writtenBytes : copy.chargedBytes),
    )
    if (copy.state === 'ready') inodesFree += copy.chargedInodes
  }
  return { ...found, freeBytes, inodesFree }
}
