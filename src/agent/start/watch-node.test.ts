import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { EXAMPLE_PROCESS, exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { PodSightings } from './pod-sightings.js'
import { renewLeases, sweep } from './watch-node.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** This node and `lost`, silent since NOW_MS, whose copy was leased to a process and to a job with an end. */
async function makeSilent(context: TestContext) {
  const record = await openSqliteRecord(join(await temporaryDirectory(context), 'record.db'))
  context.after(() => record.close())
  const seen = { seenAtMs: NOW_MS, agent: { url: 'http://there:1', seenAtMs: NOW_MS } }
  const disk = { capacityBytes: 1, freeBytes: 1, inodesTotal: 1, inodesFree: 1 }
  for (const node of ['here', 'lost']) {
    await record.saveNode({ node, cacheRoot: '/cache', policy: {}, disk, ...seen })
    await record.addAdopted(exampleCopy('flowers', { node, copyId: `copy-${node}` }), NOW_MS)
  }
  const process = { ...EXAMPLE_PROCESS, host: 'lost.example' }
  const use = { dataset: 'flowers', node: 'lost' }
  await record.leaseReady({ ...use, lease: { task: 'run', holder: process, expiresAtMs: null } }, NOW_MS)
  const timed = { task: 'timed', holder: { kind: 'ttl' as const }, expiresAtMs: NOW_MS + HOUR_MS }
  await record.leaseReady({ ...use, lease: timed }, NOW_MS)
  const notes: string[] = []
  return {
    notes,
    async sweepAt(nowMs: number, forgetNodesAfterMs: number | undefined) {
      const cache = { record, node: 'here', nowMs: () => nowMs }
      await sweep(cache, forgetNodesAfterMs, (sentence) => notes.push(sentence))
      return {
        leases: (await record.listLeases({})).map(({ task }) => task).sort(),
        nodes: (await record.listNodes()).map(({ node }) => node),
        copies: (await record.listCopies({}, nowMs)).map(({ node }) => node),
      }
    },
  }
}

test('leases of a node that is gone end at their time, those of its processes after a day of silence', async (context) => {
  const { sweepAt } = await makeSilent(context)
  const both = ['here', 'lost']
  assert.deepEqual(await sweepAt(NOW_MS + HOUR_MS - 1, undefined), {
    leases: ['run', 'timed'],
    nodes: both,
    copies: both,
  })
  assert.deepEqual((await sweepAt(NOW_MS + HOUR_MS, undefined)).leases, ['run'])
  assert.deepEqual((await sweepAt(NOW_MS + DAY_MS, undefined)).leases, ['run'])
  assert.deepEqual(
    await sweepAt(NOW_MS + DAY_MS + 1, undefined),
    { leases: [], nodes: both, copies: both },
    'its copies stay: nobody said that it will not come back',
  )
  assert.deepEqual((await sweepAt(NOW_MS + 1000 * DAY_MS, undefined)).copies, both)
})

test('a silent node and its copies are forgotten after the configured time and no sooner, never the own node', async (context) => {
  const { sweepAt, notes } = await makeSilent(context)
  assert.deepEqual((await sweepAt(NOW_MS + 30 * DAY_MS - 1, 30 * DAY_MS)).nodes, ['here', 'lost'])
  assert.deepEqual(await sweepAt(NOW_MS + 30 * DAY_MS, 30 * DAY_MS), {
    leases: [],
    nodes: ['here'],
    copies: ['here'],
  })
  assert.deepEqual(notes, ['forgot node lost with 1 copy: silent for 30 days'])
})

test('a pod keeps its lease beyond its time while it runs, and loses it within a minute after', async (context) => {
  let nowMs = Date.now()
  const { cache, makeDataset, prepare } = await openExampleCache(context, { nowMs: () => nowMs })
  const { copy } = await prepare(makeDataset('flowers'))
  await cache.record.releaseUses({}, nowMs)
  const lease = (uid: string, expiresAtMs: number | null) =>
    cache.record.leaseCopy(
      {
        copyId: copy.copyId,
        purpose: 'use',
        lease: { task: uid, holder: { kind: 'pod', uid }, expiresAtMs },
      },
      nowMs,
    )
  await lease('init', nowMs + 60_000)
  await lease('volume', null)
  let running: ReadonlySet<string> = new Set(['init', 'volume'])
  const pods = new PodSightings({ listRunning: () => running, listMounted: () => undefined })
  const look = async () => {
    nowMs += 30_000
    await renewLeases(cache, { pods })
    return (await cache.record.listLeases({})).map(({ task }) => task).toSorted()
  }
  for (let time = 0; time < 4; time++) assert.deepEqual(await look(), ['init', 'volume'])
  running = new Set(['volume'])
  assert.deepEqual(await look(), ['init', 'volume'])
  assert.deepEqual(await look(), ['volume'])
})

test('leases are renewed even if volumes cannot be reconciled with them', async (context) => {
  let nowMs = Date.now()
  const { cache, makeDataset, prepare } = await openExampleCache(context, { nowMs: () => nowMs })
  const { copy } = await prepare(makeDataset('flowers'))
  const lease = { task: 'volume', holder: { kind: 'pod', uid: 'u' }, expiresAtMs: null } as const
  await cache.record.leaseCopy({ copyId: copy.copyId, purpose: 'use', lease }, nowMs)
  const pods = new PodSightings({ listRunning: () => new Set(['u']), listMounted: () => undefined })
  nowMs += HOUR_MS
  const reconcile = () => Promise.reject(new Error('busy'))
  await assert.rejects(renewLeases(cache, { pods, reconcile }), /busy/)
  const [renewed] = (await cache.record.listLeases({})).filter(({ task }) => task === 'volume')
  assert.equal(renewed?.renewedAtMs, nowMs)
})
