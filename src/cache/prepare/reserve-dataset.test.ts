import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openExampleCache } from '../../testing/example-cache.js'
import { cancelReservation, reserveDataset } from './reserve-dataset.js'

const lease = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null } as const

async function open(t: TestContext) {
  const { cache, makeDataset, prepare } = await openExampleCache(t)
  const dataset = makeDataset('flowers')
  const reserve = (how: { isRefresh?: boolean; version?: string; signal?: AbortSignal } = {}) => {
    const { isRefresh = false, version, signal = t.signal } = how
    return reserveDataset(cache, { dataset, lease, isRefresh, isRelisted: false, version }, { signal })
  }
  const listCopies = () => cache.record.listCopies({ dataset: 'flowers' }, cache.nowMs())
  return { cache, dataset, prepare, reserve, listCopies }
}

test('a reservation is new once, holds room under a lease, and fetches nothing', async (t) => {
  const { reserve, listCopies } = await open(t)
  const first = await reserve()
  assert.deepEqual([first.isNew, first.isReady], [true, false])
  const [copy] = await listCopies()
  assert.deepEqual(
    [copy?.copyId, copy?.state, copy?.version, copy?.referenceCount, copy?.isBeingStaged, copy?.writtenBytes],
    [first.copyId, 'staging', first.version, 1, false, 0],
  )
  assert.deepEqual(await reserve({ version: first.version }), { ...first, isNew: false })
})

test('a ready copy is leased as it is, also if a new listing finds its version again', async (t) => {
  const { dataset, prepare, reserve, listCopies } = await open(t)
  const { copy } = await prepare(dataset)
  for (const isRefresh of [false, true]) {
    const found = await reserve({ isRefresh })
    assert.deepEqual(
      [found.copyId, found.version, found.isReady, found.isNew],
      [copy.copyId, copy.version, true, false],
    )
  }
  assert.deepEqual(
    (await listCopies()).map(({ copyId }) => copyId),
    [copy.copyId],
  )
})

test('room that another is staging into is shared, not made twice', async (t) => {
  const { cache, dataset, reserve, listCopies } = await open(t)
  const first = await reserve()
  const stager = await cache.record.joinOrReserve(
    {
      ...{ dataset: 'flowers', node: cache.node, lease, source: dataset, origin: 's3', isRefresh: false },
      ...{
        stager: lease,
        directoryOf: (copyId) => `${cache.root}/staging/${copyId}`,
        version: first.version,
      },
      accept: () => true,
    },
    cache.nowMs(),
  )
  assert.equal(stager.outcome, 'stage')
  const second = await reserve()
  assert.deepEqual([second.copyId, second.version], [first.copyId, first.version])
  assert.deepEqual([second.isReady, second.isNew, (await listCopies()).length], [false, false, 1])
})

test('a reservation that was interrupted before it began changes nothing', async (t) => {
  const { reserve, listCopies } = await open(t)
  await assert.rejects(reserve({ signal: AbortSignal.abort() }), { code: 'INTERRUPTED' })
  assert.deepEqual(await listCopies(), [])
})

test('cancelling gives back the room of a reservation that nobody holds, and of no other copy', async (t) => {
  const { cache, dataset, prepare, reserve, listCopies } = await open(t)
  const reserved = await reserve()
  await cancelReservation(cache, reserved.copyId)
  assert.equal((await listCopies()).length, 1, 'it is held')
  await cache.record.releaseUses({ leaseId: reserved.leaseId }, cache.nowMs())
  await cancelReservation(cache, 'another')
  assert.equal((await listCopies()).length, 1, 'it is not the one')
  await cancelReservation(cache, reserved.copyId)
  assert.deepEqual(await listCopies(), [])
  const { copy, leaseId } = await prepare(dataset)
  await cache.record.releaseUses({ leaseId }, cache.nowMs())
  await cancelReservation(cache, copy.copyId)
  assert.equal((await listCopies())[0]?.state, 'ready')
})
