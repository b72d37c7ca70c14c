import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { ReadProgress } from '../../cache/api/upkeep-api.js'
import { isDscError } from '../../failure/dsc-error.js'
import { ADA, ADMIN, EVE, openService, prepareAs, signal, silently } from '../../testing/door-service.js'
import { waitFor } from '../../testing/world.js'
import { DoorLimits } from './door-limits.js'

const ALL = { names: [], isRepair: false }
const REFUSED = { code: 'NOT_PERMITTED' }
const CLEAN_UP = { isDryRun: false, isResumed: false, by: 'nobody' }

test('a verification says what it reads, and of those datasets alone that its user may read', async (context) => {
  const readers = [`user:uid-${EVE}`]
  const faces = { name: 'faces', source: 's3://bucket/faces/', include: [], exclude: [], readers }
  const { as, flowers, makeDataset } = await openService(context, { declared: [faces] })
  await as(EVE).api.prepare({ ...prepareAs('eve'), dataset: { ...makeDataset('faces'), readers } }, silently)
  await as(EVE).api.prepare({ ...prepareAs('eve'), dataset: flowers }, silently)
  const verify = async (uid: number, names: readonly string[] = []) => {
    const told = new Set<string>()
    const onProgress = (progress: ReadProgress) => {
      if (progress.step === 'verifying') told.add(progress.dataset)
    }
    const { copies } = await as(uid).api.verify({ ...ALL, names }, { signal, onProgress })
    const named = copies.map(({ dataset, checkedFiles }) => `${dataset} ${checkedFiles}`).toSorted()
    return [named, [...told].every((name) => named.some((one) => one.startsWith(name)))]
  }
  assert.deepEqual(await verify(ADA), [['flowers 1'], true])
  assert.deepEqual(await verify(EVE), [['faces 1', 'flowers 1'], true])
  assert.deepEqual(await verify(ADMIN), [['faces 1', 'flowers 1'], true])
  await assert.rejects(verify(ADA, ['faces']), REFUSED)
  await assert.rejects(verify(ADA, ['flowers', 'faces']), REFUSED)
})

test('what changes the cache is for admins, of whom one need not be root', async (context) => {
  const { as, cache, flowers, notes, sources, makeDataset } = await openService(context)
  makeDataset('birds')
  const folder = join(sources, 'birds')
  await as(ADA).api.prepare({ ...prepareAs('ada'), dataset: flowers }, silently)
  const ways = { signal, onProgress: () => {} }
  const repository = {
    dataset: { ...flowers, name: 'model', source: 'hf://org/model' },
    pinnedSource: 'hf://org/model@main',
    directory: folder,
  }
  for (const ask of [
    () => as(EVE).api.verify({ ...ALL, isRepair: true }, ways),
    () => as(EVE).api.cleanUp(CLEAN_UP, { signal }),
    () => as(EVE).api.cleanUp({ ...CLEAN_UP, isDryRun: true }, { signal }),
    () => as(EVE).api.adopt({ folder, name: 'birds' }, ways),
    () => as(EVE).api.adopt({ folder, name: 'birds', source: { source: 's3://bucket/birds/' } }, ways),
    () => as(EVE).api.takeRepository(repository, ways),
  ])
    await assert.rejects(ask(), REFUSED)
  assert.deepEqual(await cache.record.listDatasets(), [])
  const { api } = as(ADMIN)
  assert.equal((await api.verify({ ...ALL, isRepair: true }, ways)).copies.length, 1)
  assert.deepEqual(await api.cleanUp(CLEAN_UP, { signal }), { actions: [], resumed: [] })
  const copy = await api.adopt({ folder, name: 'birds' }, ways)
  assert.deepEqual([copy?.dataset, copy?.origin], ['birds', 'local'])
  assert.equal(await api.adopt({ folder, name: 'birds' }, ways), undefined)
  assert.deepEqual(
    notes.filter((note) => note.includes('defect')),
    [],
  )
})

test('the history names the admin whom the kernel showed, and not the one in the request', async (context) => {
  const { as, cache, flowers } = await openService(context, { policy: { maxDatasets: 1 } })
  const { api, record } = as(ADMIN)
  const { leaseId } = await api.prepare({ ...prepareAs('job'), dataset: flowers }, silently)
  await record.releaseUses({ leaseId }, 0)
  Object.assign(cache, { policy: { maxDatasets: 0 } })
  const { actions } = await api.cleanUp({ ...CLEAN_UP, by: 'root' }, { signal })
  assert.deepEqual(
    actions.map(({ kind }) => kind),
    ['evict'],
  )
  const [evicted] = await cache.record.listEvents({ kinds: ['evicted'], limit: 1 })
  assert.equal(evicted?.detail.by, `uid-${ADMIN}`)
})

test('what is no path, name or span is refused before anything is done', async (context) => {
  const { client, as } = await openService(context)
  as(ADMIN)
  for (const [operation, input] of [
    ['verify', { names: 'flowers' }],
    ['verify', { names: ['a\u0000b'] }],
    ['verify', { names: Array.from({ length: 1001 }, () => 'a') }],
    ['verify', { names: ['x'.repeat(5000)] }],
    ['cleanUp', { abandonedAfterMs: -1 }],
    ['cleanUp', { abandonedAfterMs: 1e300 }],
    ['adopt', { folder: 'birds', name: 'birds' }],
    ['adopt', { folder: '/tmp/\u001b[2J', name: 'birds' }],
    ['adopt', { folder: '/tmp/birds', name: '../birds' }],
    ['adopt', { folder: '/tmp/birds', name: 'birds', source: { source: 'gopher://x/' } }],
    ['adopt', { folder: '/tmp/birds', name: 'birds', source: 's3://bucket/' }],
    ['takeRepository', { dataset: {}, pinnedSource: 's3://bucket/', directory: '/tmp/birds' }],
    ['repairStripes', { dataset: 'flowers', onto: 'node-b' }],
    ['prepareStripes', { nodes: [5] }],
  ] as const)
    await assert.rejects(
      client.ask(operation, input),
      { code: 'USAGE' },
      JSON.stringify([operation, input]).slice(0, 99),
    )
})

test('two users who verify a copy at once each hold it for themselves', async (context) => {
  const { as, cache, flowers } = await openService(context)
  await as(ADA).api.prepare({ ...prepareAs('ada'), dataset: flowers }, silently)
  const { leaseCopy, releaseUses } = cache.record
  const held: string[] = []
  let release = () => {}
  const both = new Promise<void>((resolve) => {
    release = resolve
  })
  Object.assign(cache.record, {
    leaseCopy: async (...asked: Parameters<typeof leaseCopy>) => {
      const leaseId = await leaseCopy.apply(cache.record, asked)
      held.push(leaseId!)
      if (held.length === 2) release()
      await both
      return leaseId
    },
    releaseUses: (...asked: Parameters<typeof releaseUses>) => releaseUses.apply(cache.record, asked),
  })
  const ways = { signal, onProgress: () => {} }
  const ada = as(ADA).api.verify(ALL, ways)
  await waitFor('the first lease', async () => held.length === 1)
  await Promise.all([ada, as(EVE).api.verify(ALL, ways)])
  assert.equal(new Set(held).size, 2)
})

test('a client that hangs up ends its verification, and the lease on the copy', async (context) => {
  const { as, cache, flowers } = await openService(context)
  await as(ADA).api.prepare({ ...prepareAs('ada'), dataset: flowers }, silently)
  const { leaseCopy, releaseUses } = cache.record
  const stopping = new AbortController()
  let ended = false
  Object.assign(cache.record, {
    leaseCopy: async (...asked: Parameters<typeof leaseCopy>) => {
      const leaseId = await leaseCopy.apply(cache.record, asked)
      stopping.abort('SIGINT')
      await interruptedClient
      return leaseId
    },
    releaseUses: async (...asked: Parameters<typeof releaseUses>) => {
      const released = await releaseUses.apply(cache.record, asked)
      ended = true
      return released
    },
  })
  const { copy } = await as(ADA).api.prepare({ ...prepareAs('ada'), dataset: flowers }, silently)
  const file = join(copy.path, 'a.txt')
  chmodSync(file, 0o644)
  writeFileSync(file, 'ROSE')
  const interruptedClient: Promise<void> = assert.rejects(
    as(ADA).api.verify(ALL, { signal: stopping.signal, onProgress: () => {} }),
    { code: 'INTERRUPTED' },
  )
  await interruptedClient
  await waitFor('the end of it', async () => ended)
  assert.deepEqual(await cache.record.listLeases({ purpose: 'transfer' }), [])
  // A whole verification would have noted the damage.
  assert.deepEqual(await cache.record.listEvents({ kinds: ['damaged'], limit: 1 }), [])
})

test('every operation that could write to the record counts as a change, permitted or not', async (context) => {
  let changes = 0
  class Counted extends DoorLimits {
    override countChange(): void {
      changes++
    }
  }
  const { client, as } = await openService(context, {}, new Counted())
  as(EVE)
  for (const operation of [
    ...['prepare', 'takeReady', 'leaseCopy', 'releaseUses', 'renewLease', 'handOverLease', 'addFedTime'],
    ...['undo', 'evict', 'setLock', 'saveDataset', 'removeDataset'],
    ...['verify', 'cleanUp', 'adopt', 'takeRepository', 'prepareOnNodes', 'prepareStripes', 'repairStripes'],
  ]) {
    changes = 0
    await client.ask(operation, {}).catch((error: unknown) => assert.ok(isDscError(error)))
    assert.equal(changes, 1, operation)
  }
  changes = 0
  await as(EVE).record.listCopies({}, 0)
  assert.equal(changes, 0)
})

test('an answer longer than any message of a wire arrives whole', async (context) => {
  const { as, cache } = await openService(context)
  const hindrance = 'x'.repeat(3_000_000)
  Object.assign(cache.record, { findHindrance: async () => hindrance })
  assert.equal(await as(EVE).record.findHindrance(), hindrance)
})
