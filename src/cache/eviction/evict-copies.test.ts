import assert from 'node:assert/strict'
import { existsSync, readdirSync, renameSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { EvictionPlan } from '../../policy/plan-eviction.js'
import { openExampleCache } from '../../testing/example-cache.js'
import type { Cache } from '../cache.js'
import { copiesDirectory } from '../cache-layout.js'
import { CopyInUse, evictCopies, planEvictionOf } from './evict-copies.js'
import { finishEvictions } from './finish-evictions.js'

/** A cache with a ready copy of each dataset, used in this order; those in `leased` keep their leases. */
async function openCacheWith(t: TestContext, names: readonly string[], leased: readonly string[] = []) {
  let nowMs = Date.now()
  const { cache, makeDataset, prepare } = await openExampleCache(t, { nowMs: () => nowMs })
  const prepared = new Map<string, Awaited<ReturnType<typeof prepare>>>()
  for (const name of names) {
    nowMs += 1000
    const one = await prepare(makeDataset(name))
    if (!leased.includes(name)) await cache.record.releaseUses({ leaseId: one.leaseId }, nowMs)
    prepared.set(name, one)
  }
  const copyOf = (name: string) => prepared.get(name)!.copy
  const states = async () =>
    Object.fromEntries(
      (await cache.record.listCopies({}, nowMs)).map(({ dataset, state }) => [dataset, state]),
    )
  return { cache, makeDataset, copyOf, states }
}

const named = (...names: string[]) => ({ kind: 'datasets', names }) as const
const victimsOf = ({ victims }: EvictionPlan) => victims.map(({ copy }) => copy.dataset)

test('evicting idle datasets by name deletes their files and rows, and nothing else', async (t) => {
  const { cache, copyOf, states } = await openCacheWith(t, ['old', 'new', 'other'])
  assert.deepEqual(victimsOf(await planEvictionOf(cache, named('old', 'new'))).toSorted(), ['new', 'old'])
  assert.deepEqual(await states(), { old: 'ready', new: 'ready', other: 'ready' }, 'a plan touches nothing')
  await evictCopies(cache, named('old', 'new'))
  assert.deepEqual(await states(), { other: 'ready' })
  assert.deepEqual(
    ['old', 'new', 'other'].map((name) => existsSync(copyOf(name).directory)),
    [false, false, true],
  )
  assert.deepEqual(readdirSync(join(cache.root, 'trash')), [])
})

test('a leased dataset is not evicted, and the refusal names the command that shows who has it', async (t) => {
  const { cache, copyOf, states } = await openCacheWith(t, ['idle', 'leased'], ['leased'])
  await assert.rejects(planEvictionOf(cache, named('idle', 'leased')), (error) => {
    assert.ok(error instanceof CopyInUse)
    assert.deepEqual(
      [error.code, error.dataset, error.hint],
      ['COPY_IN_USE', 'leased', 'dsc leases --dataset leased'],
    )
    return true
  })
  const { copyId } = copyOf('leased')
  await assert.rejects(planEvictionOf(cache, { kind: 'copy', copyId }), { code: 'COPY_IN_USE' })
  assert.deepEqual(victimsOf(await evictCopies(cache, named('leased'))), [])
  assert.deepEqual(victimsOf(await evictCopies(cache, { kind: 'copy', copyId })), [])
  assert.deepEqual(victimsOf(await evictCopies(cache, { kind: 'free', bytes: 1 })), ['idle'])
  assert.deepEqual(await states(), { leased: 'ready' })
  assert.ok(existsSync(join(copyOf('leased').path, 'a')))
})

test('a listing is evicted by name once it has neither a stager nor a waiting task', async (t) => {
  const { cache, makeDataset, states } = await openCacheWith(t, ['flowers'])
  const source = makeDataset('birds')
  const task = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null } as const
  const joined = await cache.record.joinOrReserve(
    {
      dataset: 'birds',
      node: cache.node,
      source,
      origin: 'local',
      directoryOf: (id) => join(cache.root, 'staging', id),
      lease: task,
      stager: task,
      isRefresh: false,
    },
    cache.nowMs(),
  )
  assert.ok(joined.outcome === 'stage')
  await assert.rejects(planEvictionOf(cache, named('birds')), { code: 'COPY_IN_USE' })
  const { copyId } = joined.copy
  const { stageLeaseId, leaseId: useLeaseId } = joined
  await cache.record.endStaging({ copyId, stageLeaseId, useLeaseId: null, isForgotten: false }, cache.nowMs())
  await assert.rejects(planEvictionOf(cache, named('birds')), { code: 'COPY_IN_USE' })
  await cache.record.releaseUses({ leaseId: useLeaseId }, cache.nowMs())
  assert.deepEqual(victimsOf(await evictCopies(cache, named('birds'))), ['birds'])
  assert.deepEqual(await states(), { flowers: 'ready' })
})

test('a dataset that is leased after it was planned stays', async (t) => {
  const { cache, states } = await openCacheWith(t, ['flowers'])
  const { victims } = await planEvictionOf(cache, named('flowers'))
  assert.equal(victims.length, 1)
  const lease = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null } as const
  await cache.record.leaseReady({ dataset: 'flowers', node: cache.node, lease }, cache.nowMs())
  assert.deepEqual(victimsOf(await evictCopies(cache, named('flowers'))), [])
  assert.deepEqual(await states(), { flowers: 'ready' })
})

test('a locked dataset is not evicted, and the refusal names the command that unlocks it', async (t) => {
  const { cache, states } = await openCacheWith(t, ['kept'])
  await cache.record.setLock({ dataset: 'kept' }, { by: 'ops', reason: 'paper', atMs: 0 }, cache.nowMs())
  await assert.rejects(planEvictionOf(cache, named('kept')), {
    code: 'COPY_IN_USE',
    hint: 'dsc unlock kept',
  })
  assert.deepEqual(victimsOf(await evictCopies(cache, named('kept'))), [])
  assert.deepEqual(await states(), { kept: 'ready' })
})

test('room is made of what was used longest ago, and no more than is needed', async (t) => {
  const { cache, states } = await openCacheWith(t, ['oldest', 'older', 'newest'])
  await evictCopies(cache, { kind: 'free', bytes: 1 })
  assert.deepEqual(await states(), { older: 'ready', newest: 'ready' })
})

test('more than can be freed is refused, and nothing is deleted', async (t) => {
  const { cache, states } = await openCacheWith(t, ['idle', 'leased'], ['leased'])
  await assert.rejects(planEvictionOf(cache, { kind: 'free', bytes: 1e12 }), {
    code: 'QUOTA_EXCEEDED',
    message: /cannot evict .* on node node-a: .* evictable in 1 copy; nothing was deleted/,
  })
  assert.deepEqual(await states(), { idle: 'ready', leased: 'ready' })
})

test('what is not on the node cannot be planned: neither a dataset nor a copy', async (t) => {
  const { cache, copyOf } = await openCacheWith(t, ['flowers'])
  await assert.rejects(planEvictionOf(cache, named('flowers', 'flowes')), { code: 'COPY_NOT_FOUND' })
  await evictCopies(cache, named('flowers'))
  const { copyId } = copyOf('flowers')
  await assert.rejects(planEvictionOf(cache, { kind: 'copy', copyId }), { code: 'COPY_NOT_FOUND' })
  await assert.rejects(planEvictionOf(cache, named('flowers')), { code: 'COPY_NOT_FOUND' })
})

test('a row is forgotten only after the last of its files', async (t) => {
  const { cache, copyOf } = await openCacheWith(t, ['flowers'])
  const { directory } = copyOf('flowers')
  const seen: unknown[] = []
  const record: Cache['record'] = {
    ...cache.record,
    finishEviction: async (copyId, nowMs) => {
      const [copy] = await cache.record.listCopies({ copyId }, nowMs)
      seen.push([copy?.state, existsSync(directory), readdirSync(join(cache.root, 'trash'))])
      return cache.record.finishEviction(copyId, nowMs)
    },
  }
  await evictCopies({ ...cache, record }, named('flowers'))
  assert.deepEqual(seen, [['evicting', false, []]])
})

test('a copy whose folder cannot be reached keeps its row, and none of the others', async (t) => {
  const { cache, copyOf, states } = await openCacheWith(t, ['blocked', 'free'])
  const ofBlocked = dirname(copyOf('blocked').directory)
  const away = join(dirname(cache.root), 'away')
  renameSync(ofBlocked, away)
  symlinkSync(away, ofBlocked)
  await assert.rejects(evictCopies(cache, named('blocked', 'free')), { code: 'CACHE_ROOT_INVALID' })
  assert.deepEqual(await states(), { blocked: 'evicting' })
  assert.deepEqual(readdirSync(away).length, 1, 'what lies behind the link is left as it is')
  renameSync(ofBlocked, `${copiesDirectory(cache.root)}/link`)
  renameSync(away, ofBlocked)
  await finishEvictions(cache, await cache.record.listCopies({ states: ['evicting'] }, cache.nowMs()))
  assert.deepEqual(await states(), {})
  assert.deepEqual(readdirSync(ofBlocked), [])
})
