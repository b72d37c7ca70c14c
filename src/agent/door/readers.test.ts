import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { RecordStore } from '../../records/contract/record-store.js'
import { ADA, EVE, openService, prepareAs, silently } from '../../testing/door-service.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { GuardedDatasets } from './guarded-datasets.js'
import { takeReadyAtDoor } from './take-ready.js'

const REFUSED = { code: 'NOT_PERMITTED', message: `only user:uid-${EVE} may read this dataset` }

/** A service with a dataset that Eve may read and Ada may not. */
async function openGuarded(context: TestContext) {
  const readers = [`user:uid-${EVE}`]
  const service = await openService(context, {
    declared: [{ name: 'faces', source: 's3://bucket/faces/', include: [], exclude: [], readers }],
  })
  const faces = { ...service.makeDataset('faces'), readers }
  const prepare = (uid: number) =>
    service.as(uid).api.prepare({ ...prepareAs(`of ${uid}`), dataset: faces }, silently)
  return { ...service, faces, prepare }
}

test('a dataset with readers is staged for them, in a folder that others cannot enter', async (context) => {
  const { prepare } = await openGuarded(context)
  await assert.rejects(prepare(ADA), REFUSED)
  const { copy } = await prepare(EVE)
  assert.equal(statSync(dirname(copy.path)).mode & 0o007, 0)
  assert.equal(statSync(join(copy.path, 'a')).mode & 0o444, 0o444)
})

test('a ready copy of it is leased to its readers alone, either way', async (context) => {
  const { prepare, path, as, cache } = await openGuarded(context)
  const { copy } = await prepare(EVE)
  await assert.rejects(prepare(ADA), REFUSED)
  const ask = { name: 'faces', lease: prepareAs('quick').lease }
  assert.equal(await takeReadyAtDoor(path, ask), undefined)
  as(EVE)
  assert.equal((await takeReadyAtDoor(path, ask))?.copy.copyId, copy.copyId)
  const leases = await cache.record.listLeases({ purpose: 'use' })
  assert.deepEqual(
    leases.map(({ holder }) => holder.userId),
    [EVE, EVE],
  )
})

test('a user who may not read a dataset sees its definition, and neither its copies nor its leases', async (context) => {
  const { prepare, as, flowers } = await openGuarded(context)
  await prepare(EVE)
  await as(ADA).api.prepare({ ...prepareAs('ada'), dataset: flowers }, silently)
  const look = async (uid: number) => {
    const { record, api } = as(uid)
    const rows = [
      await record.listCopies({}, 0),
      await record.listLeases({}),
      await record.listEvents({ limit: 100 }),
    ]
    const { victims } = await api.planEviction({ kind: 'free', bytes: 0 }, { isOwn: false })
    const { names, total } = await record.listNewestDatasets({}, 10)
    const copies = victims.map(({ copy }) => copy)
    const seen = [...rows.flat(), ...copies].map(({ dataset }) => dataset)
    return [[...new Set([...seen, ...names])].toSorted(), total]
  }
  assert.deepEqual(await look(ADA), [['flowers'], 1])
  assert.deepEqual(await look(EVE), [['faces', 'flowers'], 2])
  assert.deepEqual(await look(0), [['faces', 'flowers'], 2])
  const { record, api } = as(ADA)
  assert.equal((await record.findDataset('faces')) ?? null, null)
  for (const ask of [
    () => record.listCopies({ dataset: 'faces' }, 0),
    () => record.listLeases({ dataset: 'faces' }),
    () => record.listEvents({ dataset: 'faces', limit: 1 }),
    () => record.sumCopies({ dataset: 'faces' }, 0),
    () => record.listNewestDatasets({ dataset: 'faces' }, 1),
    () => record.foreseeOrder({ node: 'any', dataset: 'faces', limit: 1 }, 0),
    () => api.planEviction({ kind: 'datasets', names: ['faces'] }, { isOwn: false }),
  ])
    await assert.rejects(ask(), REFUSED)
})

test('a user sees the rank of a dataset among all copies, and of the first those that they may read', async (context) => {
  const { prepare, as, cache, flowers } = await openGuarded(context)
  await prepare(EVE)
  await as(ADA).api.prepare({ ...prepareAs('ada'), dataset: flowers }, silently)
  await cache.record.releaseUses({}, cache.nowMs())
  const look = async (uid: number) => {
    const asked = { node: cache.node, dataset: 'flowers', limit: 1 }
    const { first, ranks } = await as(uid).record.foreseeOrder(asked, 0)
    return [first.map(({ copy }) => copy.dataset), ranks.map(({ rank, candidates }) => [rank, candidates])]
  }
  assert.deepEqual(await look(ADA), [['flowers'], [[2, 2]]])
  assert.deepEqual(await look(EVE), [['faces'], [[2, 2]]])
})

test('a page without the rows of others is as full as any, so that the next one is asked for', async (context) => {
  const { as, prepare, cache, flowers } = await openGuarded(context)
  await as(ADA).api.prepare({ ...prepareAs('first'), dataset: flowers }, silently)
  for (let turn = 0; turn < 3; turn++) await prepare(EVE)
  const kinds = (await cache.record.listEvents({ dataset: 'flowers', limit: 9 })).map(({ kind }) => kind)
  const newest = await as(ADA).record.listEvents({ limit: 1 })
  assert.deepEqual(
    newest.map(({ dataset, kind }) => [dataset, kind]),
    [['flowers', kinds[0]]],
  )
})

test('another node’s copy brings its readers with it', async (context) => {
  const { as, cache, makeDataset } = await openService(context)
  const other = await openExampleCache(context, { record: cache.record, node: 'other' })
  const readers = [`user:uid-${EVE}`]
  const model = { ...other.makeDataset('model'), source: 'hf://org/model', readers }
  await other.prepare(model)
  const dataset = { ...makeDataset('model'), source: 'hf://org/model' }
  await cache.record.saveDataset(dataset, 0) // its definition in the record names none
  await assert.rejects(as(ADA).api.prepare({ ...prepareAs('job'), dataset }, silently), REFUSED)
  assert.deepEqual(await as(ADA).record.listCopies({}, 0), [])
})

test('the readers of a list are looked up once, for its datasets alone', async (context) => {
  const { cache, prepare, flowers } = await openGuarded(context)
  await prepare(EVE)
  const filters: unknown[] = []
  const listCopies: RecordStore['listCopies'] = (filter, nowMs) => {
    filters.push(filter.datasets)
    return cache.record.listCopies(filter, nowMs)
  }
  const counted = new Proxy(cache.record, {
    get: (record, name) => (name === 'listCopies' ? listCopies : Reflect.get(record, name)),
  })
  const guarded = new GuardedDatasets({ ...cache, record: counted })
  for (let turn = 0; turn < 2; turn++)
    assert.deepEqual(
      [...(await guarded.readersAmong(['faces', flowers.name, 'model', 'model']))],
      [['faces', [`user:uid-${EVE}`]]],
    )
  await guarded.readersAmong(['model', 'birds'])
  assert.deepEqual(filters, [['model'], ['birds']])
})
