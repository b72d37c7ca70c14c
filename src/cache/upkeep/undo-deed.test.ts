import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { cleanUp, openCacheWith } from '../../testing/evicted-copies.js'
import type { Cache } from '../cache.js'
import { evictCopies } from '../eviction/evict-copies.js'
import { listKept, measureRoom } from '../kept-copies.js'
import { planPrepare } from '../prepare/plan-prepare.js'
import { listPastDeeds } from './past-deeds.js'
import { findPastDeed, listUndoable, undoDeed } from './undo-deed.js'

const HOUR_MS = 3_600_000
const LOCK = { by: 'ops', reason: 'paper', atMs: 1 }

test('an eviction is taken back from the trash: same bytes, same facts, another folder', async (t) => {
  const { cache, states, evict } = await openCacheWith(t, ['birds', 'flowers'])
  const [before] = await cache.record.listCopies({ dataset: 'flowers' }, cache.nowMs())
  assert.equal((await evict('birds', 'flowers')).keptCopies, 2)
  assert.deepEqual(await states(), [])
  const { deed, done } = await undoDeed(cache, { by: 'ada' })
  assert.deepEqual([deed.kind, deed.by, done.length], ['evict', 'ada', 2])
  assert.deepEqual(await states(), ['birds ready', 'flowers ready'])
  const [after] = await cache.record.listCopies({ dataset: 'flowers' }, cache.nowMs())
  assert.equal(readFileSync(join(after!.path, 'a'), 'utf8'), 'flowers')
  assert.notEqual(after!.directory, before!.directory)
  for (const fact of ['version', 'source', 'origin', 'lastTask', 'chargedBytes', 'files'] as const)
    assert.deepEqual(after![fact], before![fact], fact)
  assert.deepEqual(readdirSync(join(cache.root, 'trash')), [])
  await assert.rejects(undoDeed(cache, { by: 'ada' }), {
    code: 'UNDO_IMPOSSIBLE',
    message: /^nothing to undo/,
  })
  assert.deepEqual(await cleanUp(cache), [])
})

test('each user takes back their own last deed, and another by its id', async (t) => {
  const { cache, states, evict, world } = await openCacheWith(t, ['birds', 'flowers'])
  await evict('birds')
  world.nowMs += 1000
  await evictCopies(cache, { kind: 'datasets', names: ['flowers'] }, 'bob')
  await assert.rejects(undoDeed(cache, { by: 'eve' }), { code: 'UNDO_IMPOSSIBLE' })
  const { id } = await findPastDeed(cache, { by: 'bob' })
  await undoDeed(cache, { by: 'ada' })
  assert.deepEqual(await states(), ['birds ready'])
  await undoDeed(cache, { by: 'ada', id })
  assert.deepEqual(await states(), ['birds ready', 'flowers ready'])
})

test('kept copies count as free, and go, oldest first, when a download needs their room', async (t) => {
  const { cache, stage, evict, world, makeDataset } = await openCacheWith(t, ['birds', 'flowers'])
  await evict('birds')
  world.nowMs += 1000
  await evict('flowers')
  const [birds, flowers] = listKept(cache.root)
  assert.ok(birds && flowers)
  const planned = { isRefresh: false, isPrefetch: false, signal: t.signal }
  const { diskBytes } = await planPrepare(cache, makeDataset('trees'), planned)
  world.capacityBytes = 1e9
  const forOthers = 5e7 // 5 percent
  world.freeBytes = diskBytes! + forOthers - birds.diskBytes
  const { freeBytes } = await measureRoom(cache)
  assert.equal(freeBytes, diskBytes! + forOthers + flowers.diskBytes)
  await stage('trees')
  assert.deepEqual(
    listKept(cache.root).map(({ copyId }) => copyId),
    [flowers.copyId],
  )
  const [, ofBirds] = await listPastDeeds(cache.record, world.nowMs)
  await assert.rejects(undoDeed(cache, { by: 'ada', id: ofBirds!.id }), {
    code: 'UNDO_IMPOSSIBLE',
    message:
      /^cannot take back the eviction of birds, .*: the files of birds are gone: something needed their room$/,
    hint: 'dsc prepare birds',
  })
})

test('an eviction on a full disk keeps nothing that other programs may need', async (t) => {
  const { cache, evict, world } = await openCacheWith(t, ['flowers'])
  world.freeBytes = 1e10
  assert.equal((await evict('flowers')).keptCopies, 0)
  assert.deepEqual(readdirSync(join(cache.root, 'trash')), [])
})

test('a copy that would need a victim, or is here again, stays in the trash', async (t) => {
  const { cache, stage, states, evict } = await openCacheWith(t, ['flowers'], { policy: { maxDatasets: 1 } })
  await evict('flowers')
  await stage('birds')
  await assert.rejects(undoDeed(cache, { by: 'ada' }), {
    message: /: flowers needs \d.* which the limits no longer leave$/,
    hint: 'dsc prepare flowers',
  })
  await evictCopies(cache, { kind: 'datasets', names: ['birds'] })
  await stage('flowers')
  await assert.rejects(undoDeed(cache, { by: 'ada' }), { message: /is here again/ })
  assert.deepEqual(await states(), ['flowers ready'])
  assert.equal(listKept(cache.root).length, 1)
  assert.deepEqual(await cleanUp(cache), [], 'and nothing of the attempt is left')
})

test('a dataset that is here again is not taken back: jobs would get the older version', async (t) => {
  const { cache, stage, states, evict } = await openCacheWith(t, ['flowers'])
  await evict('flowers')
  await stage('flowers')
  await assert.rejects(undoDeed(cache, { by: 'ada' }), { message: /: flowers is here again/ })
  assert.deepEqual(await states(), ['flowers ready'])
})

test('a cleanup of a user is taken back as one deed; what a service cleans up is deleted', async (t) => {
  const { cache, states } = await openCacheWith(t, ['birds', 'flowers', 'trees'])
  await cleanUp({ ...cache, policy: { maxDatasets: 1 } }, 'ada')
  assert.equal((await states()).length, 1)
  const { deed } = await undoDeed(cache, { by: 'ada' })
  assert.deepEqual([deed.kind, deed.events.length], ['cleanup', 2])
  assert.equal((await states()).length, 3)
  await cleanUp({ ...cache, policy: { maxDatasets: 1 } })
  assert.deepEqual(readdirSync(join(cache.root, 'trash')), [])
})

test('after a day the files are gone with the next cleanup, and the deed is not listed', async (t) => {
  const { cache, evict, world } = await openCacheWith(t, ['flowers'])
  await evict('flowers')
  assert.deepEqual(await cleanUp(cache), [], 'a cleanup leaves them for a day')
  world.nowMs += 24 * HOUR_MS + 1
  assert.deepEqual(
    (await cleanUp(cache)).map(({ kind, reason }) => [kind, reason]),
    [['empty-trash', 'evicted more than a day ago']],
  )
  assert.deepEqual(readdirSync(join(cache.root, 'trash')), [])
  assert.deepEqual(await listPastDeeds(cache.record, world.nowMs), [])
})

test('a kill after the files are back leaves a copy that the next cleanup adopts', async (t) => {
  const { cache, states, evict } = await openCacheWith(t, ['flowers'])
  await evict('flowers')
  const killed = {
    ...cache,
    record: { ...cache.record, returnCopy: () => Promise.reject(new Error('killed')) },
  }
  await assert.rejects(undoDeed(killed, { by: 'ada' }), /killed/)
  await cleanUp(cache)
  assert.deepEqual(await states(), ['flowers ready'])
  await assert.rejects(undoDeed(cache, { by: 'ada' }), { message: /: flowers is here again/ })
})

test('a cleanup that adopts the files in the middle of an undo carries it out', async (t) => {
  const { cache, states, evict } = await openCacheWith(t, ['flowers'])
  await evict('flowers')
  const returnCopy: Cache['record']['returnCopy'] = async (...request) => {
    await cleanUp(cache)
    return cache.record.returnCopy(...request)
  }
  const { done } = await undoDeed({ ...cache, record: { ...cache.record, returnCopy } }, { by: 'ada' })
  assert.equal(done.length, 1)
  assert.deepEqual(await states(), ['flowers ready'])
  assert.deepEqual(await listPastDeeds(cache.record, cache.nowMs()), [])
})

test('a failure before the record is asked puts the files back into the trash', async (t) => {
  const { cache, states, evict } = await openCacheWith(t, ['flowers'])
  await evict('flowers')
  const listEvents: Cache['record']['listEvents'] = (filter) =>
    filter.copyId === undefined ? cache.record.listEvents(filter) : Promise.reject(new Error('no answer'))
  const failing = { ...cache, record: { ...cache.record, listEvents } }
  await assert.rejects(undoDeed(failing, { by: 'ada' }), /no answer/)
  assert.equal(listKept(cache.root).length, 1)
  await undoDeed(cache, { by: 'ada' })
  assert.deepEqual(await states(), ['flowers ready'])
})

test('an unlock is taken back with its reason, unless somebody locked it since', async (t) => {
  const { cache } = await openCacheWith(t, ['flowers'])
  const lockOf = async () => (await cache.record.listCopies({}, cache.nowMs()))[0]?.lock
  const set = (lock: typeof LOCK | null) =>
    cache.record.setLock({ dataset: 'flowers' }, lock, cache.nowMs(), 'ada')
  await set(LOCK)
  await set(null)
  await undoDeed(cache, { by: 'ada' })
  assert.deepEqual(await lockOf(), LOCK)
  await set(null)
  await set({ ...LOCK, by: 'bob' })
  await assert.rejects(undoDeed(cache, { by: 'ada' }), {
    message: 'cannot take back the unlock of flowers: flowers on node-a is locked already, by bob',
  })
})

test('a release is taken back for what is left of its time, while its copy is there', async (t) => {
  const { cache, world } = await openCacheWith(t, ['flowers'])
  const expiresAtMs = world.nowMs + HOUR_MS
  const lease = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs } as const
  const use = { dataset: 'flowers', node: cache.node, lease }
  await cache.record.leaseReady(use, world.nowMs)
  const release = () => cache.record.releaseUses({ task: 'job' }, world.nowMs, 'ada')
  await release()
  world.nowMs += 1000
  await undoDeed(cache, { by: 'ada' })
  const [again] = await cache.record.listLeases({ purpose: 'use' })
  assert.deepEqual([again?.task, again?.expiresAtMs], ['job', expiresAtMs])
  await release()
  await evictCopies(cache, { kind: 'datasets', names: ['flowers'] })
  await assert.rejects(undoDeed(cache, { by: 'ada' }), {
    message: 'cannot take back the release of flowers: the copy of flowers on node-a is gone',
  })
  world.nowMs += HOUR_MS
  await assert.rejects(undoDeed(cache, { by: 'ada' }), { message: /would have expired since$/ })
})

test('what cannot be taken back any more hides no older deed, and is not listed', async (t) => {
  const { cache, world, evict, stage } = await openCacheWith(t, ['birds', 'flowers', 'trees', 'ferns'])
  const lease = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: world.nowMs + HOUR_MS } as const
  const release = async (dataset: string) => {
    world.nowMs += 1000
    await cache.record.leaseReady({ dataset, node: cache.node, lease }, world.nowMs)
    await cache.record.releaseUses({ task: 'job' }, world.nowMs, 'ada')
  }
  const unlock = async (dataset: string) => {
    world.nowMs += 1000
    await cache.record.setLock({ dataset }, LOCK, world.nowMs)
    await cache.record.setLock({ dataset }, null, world.nowMs, 'ada')
  }
  await unlock('birds')
  await release('flowers')
  await unlock('flowers')
  await evictCopies(cache, { kind: 'datasets', names: ['flowers'] })
  await evict('trees', 'ferns')
  await stage('trees')
  const listed = async () =>
    (await listUndoable(cache)).map(({ kind, events }) => [kind, ...events.map(({ dataset }) => dataset)])
  assert.deepEqual(await listed(), [
    ['evict', 'trees', 'ferns'],
    ['unlock', 'birds'],
  ])
  const partly = await undoDeed(cache, { by: 'ada' })
  assert.deepEqual(
    partly.refused.map(({ reason }) => reason),
    ['trees is here again, or being staged'],
  )
  assert.deepEqual(await listed(), [['unlock', 'birds']])
  const { deed } = await undoDeed(cache, { by: 'ada' })
  assert.deepEqual([deed.kind, deed.events[0]?.dataset], ['unlock', 'birds'])
  assert.deepEqual(await listed(), [])
  await assert.rejects(undoDeed(cache, { by: 'ada' }), {
    code: 'UNDO_IMPOSSIBLE',
    message: /^cannot take back the eviction of trees, .*: trees is here again, or being staged$/,
  })
})

test('a lease of a process that has ended is not taken back', async (t) => {
  const { cache, world } = await openCacheWith(t, ['flowers'])
  const { holdByThisProcess } = await import('../../platform/processes.js')
  const holder = { ...holdByThisProcess(), startTicks: '1' }
  const lease = { task: 'job', holder, expiresAtMs: null }
  await cache.record.leaseReady({ dataset: 'flowers', node: cache.node, lease }, world.nowMs)
  await cache.record.releaseUses({ task: 'job' }, world.nowMs, 'ada')
  await assert.rejects(undoDeed(cache, { by: 'ada' }), { message: /: nothing would hold flowers: process/ })
})
