import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Copy } from '../../model/copy.js'
import { planAdmission } from '../../policy/plan-admission.js'
import { type EvictionPlan, planEviction, planToFree } from '../../policy/plan-eviction.js'
import { DISK, exampleCopy, exampleLease, NOW_MS } from '../../testing/example-copies.js'
import { orderAll } from '../../testing/naive-order.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { addLease } from '../change/grant-lease.js'
import { insertCopy } from '../change/insert-copy.js'
import type { Decide } from '../contract/record-store.js'
import { openSqliteDatabase } from '../sqlite/sqlite-database.js'
import { decideOnNode } from './decide-on-node.js'
import { foreseeOrder } from './foresee-order.js'
import { selectCopyUses } from './select-copy-uses.js'

const seed = Number(process.env.DSC_TEST_SEED ?? Date.now() % 1_000_000_007)
const NODE = { node: 'node-a', nowMs: NOW_MS }
const SHARES = [{ party: 'user:ada', percent: 40 }]

const copies = fc.array(
  fc.record({
    dataset: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
    state: fc.constantFrom('ready', 'ready', 'ready', 'ready', 'staging', 'evicting'),
    bytes: fc.nat({ max: 300 }),
    ageMs: fc.nat({ max: 6 }),
    isLocked: fc.constantFrom(false, false, false, true),
    isLeased: fc.constantFrom(false, false, false, true),
    isAdas: fc.boolean(),
    isElsewhere: fc.constantFrom(false, false, false, false, true),
  }),
  { maxLength: 12 },
)
type Decision = EvictionPlan | { readonly waits: true }
type Drawn = typeof copies extends fc.Arbitrary<readonly (infer One)[]> ? One : never

const asked = fc.record({
  many: fc.constantFrom(1, 2, 3),
  bytes: fc.nat({ max: 900 }),
  maxDatasets: fc.nat({ max: 12 }),
  isPart: fc.boolean(),
  hasShares: fc.boolean(),
})

type Asked = typeof asked extends fc.Arbitrary<infer One> ? One : never

/** Every kind of decision that is made with the copies of a node. */
function decisionsFor({ bytes, maxDatasets, isPart, hasShares }: Asked): readonly Decide<Decision>[] {
  const policy = { maxDatasets, ...(hasShares && { shares: SHARES }) }
  const disk = { ...DISK, freeBytes: 500 }
  const request = { datasets: 1, bytes, inodes: 0 }
  return [
    (copies, unread) =>
      planEviction({ policy, disk, copies, unread, request, accept: isPart ? 'part' : 'all' }),
    (copies, unread) => planToFree(copies, bytes, unread),
    (copies, unread) => {
      const admission = planAdmission({
        ...{ policy, disk, copies, unread, request, requestCopyId: '', parties: ['user:ada'] },
      })
      return 'plan' in admission ? admission.plan : { waits: true }
    },
  ]
}

test(`decisions about many copies, and their order, are those with all of them (DSC_TEST_SEED=${seed})`, async (t) => {
  const database = await openSqliteDatabase(join(await temporaryDirectory(t), 'record.db'))
  t.after(() => database.close())
  const tally = { few: 0, all: 0 }
  const holds = async (drawn: readonly Drawn[], given: Asked) => {
    await database.write('quick', 'all', async (transaction) => {
      await transaction.run('DELETE FROM copies')
      for (const [index, each] of drawn.entries()) {
        const copy = makeCopy(index, each)
        insertCopy(transaction, copy)
        const lease = exampleLease('task-1')
        if (each.isLeased) addLease({ transaction, nowMs: NOW_MS }, { copy, purpose: 'transfer', lease })
      }
    })
    const all = await selectCopyUses(database, { node: 'node-a' }, NOW_MS)
    for (const decide of decisionsFor(given)) {
      let asks = 0
      const count: Decide<Decision> = (copies, unread) => {
        asks += 1
        return decide(copies, unread)
      }
      const found = await database.read((snapshot) => decideOnNode(snapshot, NODE, count, given.many))
      assert.deepEqual(describe(found), describe(decide(all)))
      tally[asks === 1 ? 'few' : 'all'] += 1
    }
    for (const dataset of new Set(all.map((copy) => copy.dataset))) {
      const order = { node: 'node-a', dataset, limit: given.many }
      const found = await database.read((snapshot) => foreseeOrder(snapshot, order, NOW_MS))
      assert.deepEqual(found, orderAll(all, order))
    }
  }
  await fc.assert(fc.asyncProperty(copies, asked, holds), { seed, numRuns: 100 })
  assert.ok(tally.few > 0 && tally.all > 0, JSON.stringify(tally))
})

function makeCopy(index: number, drawn: Drawn): Copy {
  const { dataset, state, bytes, ageMs, isLocked, isAdas, isElsewhere } = drawn
  const { referenceCount: _, isBeingStaged: __, ...copy } = exampleCopy(dataset)
  return {
    ...{ ...copy, copyId: `copy-${index}`, node: isElsewhere ? 'node-b' : 'node-a', state },
    ...{ version: `v${index}`, stripe: { index, nodes: [] } }, // so that several may be staged at once
    ...{ chargedBytes: bytes, writtenBytes: Math.floor(bytes / 2), lastUsedAtMs: NOW_MS - ageMs },
    ...{ readyAtMs: NOW_MS - index, lock: isLocked ? { by: 'ada', reason: '', atMs: 1 } : null },
    ...(isAdas && { parties: ['user:ada'] }),
  }
}

function describe(decision: Decision) {
  if ('waits' in decision) return decision
  const { victims, shortfalls, freedBytes, evictableBytes, evictableCopies } = decision
  // A request that fits counts no others: with shares, that takes all copies.
  const evictable = victims.length > 0 || shortfalls.length > 0 ? { evictableBytes, evictableCopies } : {}
  return {
    shortfalls,
    freedBytes,
    ...evictable,
    victims: victims.map(({ copy, reason }) => [copy.copyId, reason]),
  }
}
