import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { RecordStore } from '../../records/contract/record-store.js'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { advanceStagings, fillRecord } from '../../testing/example-record.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import type { StatusSnapshot } from './compose-status.js'
import { RecordReader } from './status-reader.js'
import { readStatus } from './status-snapshot.js'

async function openExample(context: TestContext) {
  const record = await openSqliteRecord(join(await temporaryDirectory(context), 'record.db'))
  context.after(() => record.close())
  const stagings = await fillRecord(record, { copies: 40, nodes: 3, stagings: 2, nowMs: NOW_MS })
  return { record, stagings }
}

/** A clock on which full reads take "an hour", so that only the first read is full; and a counter of full reads. */
function slowClock() {
  let ms = 0
  return {
    nowMs: () => NOW_MS,
    elapsedMs: () => {
      ms += 3_600_000
      return ms > 4 * 3_600_000 ? 4 * 3_600_000 : ms
    },
  }
}

function supply(record: RecordStore) {
  return { current: async () => record, discard: async () => {} }
}

function sortLeases<Kept extends { leases: readonly { leaseId: string }[] }>(status: Kept): Kept {
  return { ...status, leases: status.leases.toSorted((a, b) => (a.leaseId < b.leaseId ? -1 : 1)) }
}

test('reading changes sees what reading everything sees, after every kind of change that leaves an event', async (context) => {
  const { record, stagings } = await openExample(context)
  let fullReads = 0
  const counting: RecordStore = {
    ...record,
    listCopies(filter, nowMs) {
      if (filter.copyId === undefined && filter.states === undefined) fullReads += 1
      return record.listCopies(filter, nowMs)
    },
  }
  const reader = new RecordReader({ supply: supply(counting), filter: {}, clock: slowClock() })
  await reader.read()
  const lock = { by: 'ops', reason: 'test', atMs: NOW_MS }
  const changes: (readonly [string, () => Promise<unknown>])[] = [
    ['nothing', async () => {}],
    ['progress of a download', () => advanceStagings(record, stagings, 1024 ** 3, NOW_MS)],
    ['a lock', () => record.setLock({ dataset: 'dataset-0002' }, lock, NOW_MS)],
    ['a release', () => record.releaseUses({ dataset: 'dataset-0001' }, NOW_MS)],
    [
      'an eviction that began',
      () =>
        record.beginEviction(
          { node: 'gpu-02', task: null },
          (copies) => ({
            victims: copies
              .filter((copy) => copy.dataset === 'dataset-0005')
              .map((copy) => ({ copy, reason: 'test' })),
            freedBytes: 0,
            shortfalls: [],
            evictableBytes: 0,
            evictableCopies: 0,
          }),
          NOW_MS,
        ),
    ],
    ['an eviction that ended', () => record.finishEviction('copy-4', NOW_MS)],
    [
      'a published copy',
      () =>
        record.markReady(
          {
            copyId: stagings[0]!.copyId,
            stageLeaseId: stagings[0]!.stageLeaseId,
            directory: '/d',
            path: '/d/files',
            chargedBytes: 5,
            chargedInodes: 1,
            reason: 'test',
            detail: {},
          },
          NOW_MS,
        ),
    ],
    ['forgotten copies', () => record.forgetCopies(['copy-7', 'copy-8'], 'test', NOW_MS)],
    [
      'a node that looked again',
      async () => record.saveNode({ ...(await record.listNodes())[0]!, seenAtMs: NOW_MS + 5 }),
    ],
  ]
  for (const [name, change] of changes) {
    await change()
    const fullReadsBefore = fullReads
    const seen = await reader.read()
    assert.equal(fullReads, fullReadsBefore, `${name}: read changes only`)
    assert.deepEqual(sortLeases(seen), sortLeases(await readStatus(record, {}, { nowMs: NOW_MS })), name)
  }
})

test('more events than a snapshot holds make the reader read everything', async (context) => {
  const { record } = await openExample(context)
  const reader = new RecordReader({ supply: supply(record), filter: {}, clock: slowClock() })
  await reader.read()
  const lock = { by: 'ops', reason: 'test', atMs: NOW_MS }
  await record.setLock({ dataset: 'dataset-0002' }, lock, NOW_MS)
  for (let at = 0; at < 250; at += 1) {
    await record.addEvent({
      atMs: NOW_MS,
      kind: 'refused',
      node: 'gpu-01',
      dataset: 'x',
      copyId: null,
      task: null,
      reason: 'test',
      detail: {},
    })
  }
  const seen = await reader.read()
  assert.equal(seen.copies.find((copy) => copy.dataset === 'dataset-0002')?.lock?.by, 'ops')
})

test('a record that fails is discarded, and the next reading reads everything from a new one', async (context) => {
  const { record } = await openExample(context)
  let isBroken = true
  let discarded = 0
  const broken: RecordStore = {
    ...record,
    listCopies: async () => {
      throw new Error('disk I/O error')
    },
  }
  const reader = new RecordReader({
    supply: {
      current: async () => (isBroken ? broken : record),
      discard: async () => {
        discarded += 1
      },
    },
    filter: {},
    clock: slowClock(),
  })
  await assert.rejects(reader.read(), /disk I\/O error/)
  assert.equal(discarded, 1)
  isBroken = false
  assert.equal((await reader.read()).copies.length, 42)
})

test('the usage of a node counts every dataset, also where the status is asked for one', async (context) => {
  const { record } = await openExample(context)
  const all = await readStatus(record, {}, { nowMs: NOW_MS })
  const one = await readStatus(record, { dataset: 'dataset-0001' }, { nowMs: NOW_MS })
  assert.equal(one.copies.length, 1)
  const usages = ({ nodes }: StatusSnapshot) => nodes.map(({ usage }) => usage)
  assert.deepEqual(usages(one), usages(all))
})

test('a status of one node shows its striped versions with their stripes elsewhere, and those of no other', async (context) => {
  const { record } = await openExample(context)
  const nodes = ['gpu-01', 'gpu-02']
  for (const [index, node] of [...nodes, 'gpu-03'].entries()) {
    const stripe = node === 'gpu-03' ? { index: 0, nodes: ['gpu-03'] } : { index, nodes }
    const dataset = node === 'gpu-03' ? 'elsewhere' : 'striped'
    await record.addAdopted(exampleCopy(dataset, { copyId: `stripe-${index}`, node, stripe }), NOW_MS)
  }
  const { copies, layouts } = await readStatus(record, { node: 'gpu-01' }, { nowMs: NOW_MS })
  assert.deepEqual(new Set(copies.map(({ node }) => node)), new Set(['gpu-01']))
  assert.deepEqual(
    layouts.map(({ dataset, stripes }) => [dataset, stripes.map(({ state }) => state)]),
    [['striped', ['ready', 'ready']]],
  )
})

test('a node is seen as long as a stager there renews its lease', async (context) => {
  const { record } = await openExample(context)
  const [entry] = await record.listNodes()
  const staged = (await record.listLeases({ node: entry!.node })).find(({ purpose }) => purpose === 'stage')!
  assert.ok(staged.renewedAtMs > entry!.seenAtMs)
  const { nodes, transfers } = await readStatus(record, {}, { nowMs: NOW_MS })
  assert.equal(nodes[0]!.seenAtMs, staged.renewedAtMs)
  assert.ok(transfers.some(({ stagerSeenAtMs }) => stagerSeenAtMs === staged.renewedAtMs))
})

test('this node, measured now, stands in for what the record says of it, also when the record knows nothing', async (context) => {
  const { record } = await openExample(context)
  const known = (await record.listNodes())[1]!
  const own = { ...known, seenAtMs: NOW_MS + 9, disk: { ...known.disk, freeBytes: 7 } }
  const status = await readStatus(record, {}, { nowMs: NOW_MS, ownNode: own })
  assert.deepEqual(
    status.nodes.map((node) => [node.node, node.disk.freeBytes === 7]),
    [
      ['gpu-01', false],
      ['gpu-02', true],
      ['gpu-03', false],
    ],
  )
  const another = await readStatus(
    record,
    {},
    {
      nowMs: NOW_MS,
      ownNode: { ...own, node: 'gpu-00' },
    },
  )
  assert.deepEqual(
    another.nodes.map((node) => node.node),
    ['gpu-00', 'gpu-01', 'gpu-02', 'gpu-03'],
  )
})

test('a transfer names its stager and those who wait, once each', async (context) => {
  const { record } = await openExample(context)
  const { transfers } = await readStatus(record, {}, { nowMs: NOW_MS })
  assert.deepEqual(
    transfers.map(({ dataset, stager, waitingTasks }) => [dataset, stager, waitingTasks]),
    [
      ['webdata-1', 'job-4800', ['job-4900']],
      ['webdata-2', 'job-4801', ['job-4901']],
    ],
  )
})
