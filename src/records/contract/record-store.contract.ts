import assert from 'node:assert/strict'
import { type CopySum, sumUpCopies } from '../../policy/copy-sums.js'
import { DISK, exampleCopy, exampleDataset, exampleLease, NOW_MS } from '../../testing/example-copies.js'
import { joinRequest, NODE, stageCopy } from '../../testing/example-staging.js'
import { contractTest, type OpenRecord } from './contract-test.contract.js'
import { recordEventsContract } from './record-events.contract.js'
import { recordLeasesContract } from './record-leases.contract.js'
import type { CopyFilter } from './record-requests.js'
import { recordStagingContract } from './record-staging.contract.js'
import { recordStripesContract } from './record-stripes.contract.js'
import { recordUndoContract } from './record-undo.contract.js'

/** Rules of every record adapter. */
export function recordStoreContract(engine: string, open: OpenRecord): void {
  const contract = contractTest(engine, open)

  recordStagingContract(engine, open)
  recordLeasesContract(engine, open)
  recordStripesContract(engine, open)
  recordUndoContract(engine, open)
  recordEventsContract(engine, open)

  contract(
    'keeps datasets until they are removed, and refuses to while they have copies',
    async (record, second) => {
      const flowers = exampleDataset('flowers', { endpoint: 'http://127.0.0.1:9000', include: ['**/*.jpg'] })
      await record.saveDataset(flowers, NOW_MS)
      assert.deepEqual(await second.findDataset('flowers'), flowers)
      await stageCopy(record, 'flowers', 'task-1')
      assert.deepEqual(
        (await second.removeDataset('flowers')).map(({ dataset }) => dataset),
        ['flowers'],
      )
      await record.saveDataset(exampleDataset('birds'), NOW_MS)
      assert.deepEqual(await record.removeDataset('birds'), [])
      assert.deepEqual(await second.listDatasets(), [flowers])
    },
  )

  contract(
    'shows in the view cache_record exactly the fields of the seed and the present reference count',
    async (record, _, readView) => {
      await record.addAdopted(
        exampleCopy('flowers', { lock: { by: 'ops', reason: 'keep', atMs: NOW_MS } }),
        NOW_MS,
      )
      const nowMs = record.nowMs()
      for (const [task, expiresAtMs] of [
        ['job-1', nowMs + 60_000],
        ['job-2', nowMs - 1],
      ] as const) {
        const lease = exampleLease(task, { expiresAtMs })
        await record.leaseReady({ dataset: 'flowers', node: NODE, lease }, nowMs)
      }
      assert.deepEqual(await readView(), [
        { dataset: 'flowers', node: NODE, last_task: 'job-2', lock_state: 'locked', reference_count: 1 },
      ])
    },
  )

  contract('adds an adopted copy once', async (record) => {
    const copy = exampleCopy('flowers', {
      source: null,
      lock: { by: 'dsc', reason: 'adopted', atMs: NOW_MS },
    })
    assert.equal(await record.addAdopted(copy, NOW_MS), true)
    assert.equal(await record.addAdopted({ ...copy, copyId: 'another' }, NOW_MS), false)
    const [found] = await record.listCopies({}, NOW_MS)
    assert.deepEqual(found, copy)
    assert.equal(await record.forgetCopies([copy.copyId], 'files are gone', NOW_MS), 1)
    assert.equal(await record.forgetCopies([copy.copyId], 'files are gone', NOW_MS), 0)
  })

  contract('finds the copies of a source, and those of hubs', async (record) => {
    const sources = {
      ...{ a: 's3://bucket/data/', b: 's3://bucket/data', c: 's3://bucket/data-2/' },
      ...{ d: 'hf://models/org/d', e: 'https://hf.example/e/' },
    }
    for (const [readyAtMs, [name, source]] of Object.entries(sources).entries())
      await record.addAdopted(
        exampleCopy(name, { source: exampleDataset(name, { source }), readyAtMs }),
        NOW_MS,
      )
    await record.addAdopted(exampleCopy('f', { source: null, origin: 'local' }), NOW_MS)
    const find = async (filter: CopyFilter) =>
      (await record.listCopies(filter, NOW_MS)).map(({ dataset }) => dataset)
    assert.deepEqual(await find({ sourceUrl: 's3://bucket/data' }), ['a', 'b'])
    assert.deepEqual(await find({ isOfHub: true }), ['d'])
    assert.deepEqual(await find({ states: ['ready'], isNewestFirst: true, limit: 3 }), ['f', 'e', 'd'])
  })

  contract('lists copies in pages, in one order', async (record) => {
    const places = ['a gpu-02', 'a gpu-01', 'b gpu-01', 'B gpu-01', 'é gpu-01'].map((place) =>
      place.split(' '),
    )
    for (const [at, [dataset, node]] of places.entries())
      await record.addAdopted(exampleCopy(dataset!, { copyId: `c${at}`, node: node! }), NOW_MS)
    const all = await record.listCopies({}, NOW_MS)
    assert.equal(all.length, places.length)
    for (const [at, copy] of all.entries()) {
      const next = await record.listCopies({ after: copy, limit: 2 }, NOW_MS)
      assert.deepEqual(next, all.slice(at + 1, at + 3))
    }
    const [, second] = all
    assert.deepEqual(
      await record.listCopies({ node: 'gpu-01', after: second! }, NOW_MS),
      all.slice(2).filter(({ node }) => node === 'gpu-01'),
    )
  })

  contract('names the datasets that were used last, equals by name, and counts them all', async (record) => {
    for (const [at, [dataset, node, usedAgoMs]] of (
      [
        ['a', 'gpu-01', 3],
        ['b', 'gpu-01', 2],
        ['b', 'gpu-02', 9],
        ['c', 'gpu-02', 2],
        ['d', 'gpu-02', 1],
      ] as const
    ).entries()) {
      const changes = { copyId: `c${at}`, node, lastUsedAtMs: NOW_MS - usedAgoMs }
      await record.addAdopted(exampleCopy(dataset, changes), NOW_MS)
    }
    assert.deepEqual(await record.listNewestDatasets({}, 3), { names: ['d', 'b', 'c'], total: 4 })
    assert.deepEqual(await record.listNewestDatasets({ node: 'gpu-01' }, 3), { names: ['b', 'a'], total: 2 })
    assert.deepEqual(await record.listNewestDatasets({ dataset: 'none' }, 3), { names: [], total: 0 })
    const idsOf = async (filter: CopyFilter) =>
      (await record.listCopies(filter, NOW_MS)).map(({ copyId }) => copyId)
    assert.deepEqual(await idsOf({ datasets: ['c', 'b'] }), ['c1', 'c2', 'c3'])
    assert.deepEqual(await idsOf({ datasets: ['b', 'none'], node: 'gpu-02' }), ['c2'])
    assert.deepEqual(await idsOf({ datasets: [] }), [])
  })

  contract('tells where the copies of a node lie, and which of them are plain', async (record) => {
    for (const [dataset, origin] of [
      ['adopted', 'local'],
      ['plain', 's3'],
      ['read', 's3'],
      ['used', 's3'],
    ] as const)
      await record.addAdopted(exampleCopy(dataset, { origin }), NOW_MS)
    await record.addAdopted(exampleCopy('birds', { node: 'other' }), NOW_MS)
    await record.joinOrReserve(joinRequest('pending', 'task-1'), NOW_MS)
    for (const [dataset, purpose] of [
      ['read', 'transfer'],
      ['used', 'use'],
    ] as const)
      await record.leaseReady({ dataset, node: NODE, purpose, lease: exampleLease('task-1') }, NOW_MS)
    const copies = await record.listCopies({ node: NODE }, NOW_MS)
    assert.equal(copies.length, 5)
    assert.deepEqual(
      (await record.listPlaces(NODE)).toSorted((a, b) => (a.dataset < b.dataset ? -1 : 1)),
      copies.map(({ dataset, path }) => ({ dataset, path, isPlain: ['plain', 'used'].includes(dataset) })),
    )
  })

  contract('sums up what lies in stripes, and what counts for whom, by itself', async (record) => {
    const stripe = { index: 0, nodes: [NODE, 'other'] }
    const copies = [
      exampleCopy('whole'),
      exampleCopy('striped', { stripe, chargedBytes: 7 }),
      exampleCopy('hers', { chargedBytes: 5, writtenBytes: 2 }),
      exampleCopy('his', { lock: { by: 'ops', reason: 'keep', atMs: NOW_MS } }),
      exampleCopy('lost', { source: null, node: 'other' }),
    ]
    for (const copy of copies) await record.addAdopted(copy, NOW_MS)
    for (const [dataset, party] of [
      ['hers', 'user:ada'],
      ['his', 'user:bob'],
    ] as const) {
      const lease = { ...exampleLease('job'), parties: [party] }
      await record.leaseReady({ dataset, node: NODE, lease }, NOW_MS)
    }
    const listed = await record.listCopies({}, NOW_MS)
    const sorted = (sums: readonly CopySum[]) => sums.toSorted(compareSums)
    assert.equal(sumUpCopies(listed).length, 5)
    assert.deepEqual(sorted(await record.sumCopies({}, NOW_MS)), sorted(sumUpCopies(listed)))
    const other = await record.sumCopies({ node: 'other' }, NOW_MS)
    assert.deepEqual(
      other.map(({ copies: count, hasSource }) => [count, hasSource]),
      [[1, false]],
    )
    const striped = await record.listCopies({ isStriped: true }, NOW_MS)
    assert.deepEqual(
      striped,
      listed.filter((copy) => copy.stripe ?? copy.layouts),
    )
  })

  contract('lists leases and events in pages, in one order', async (record) => {
    await stageCopy(record, 'flowers', 'task-1')
    for (const [at, task] of ['b', 'a', 'c', 'd'].entries())
      await record.leaseReady(
        { dataset: 'flowers', node: NODE, lease: exampleLease(task) },
        NOW_MS + Math.floor(at / 2),
      )
    const leases = await record.listLeases({})
    assert.ok(leases.length > 3)
    for (const [at, lease] of leases.entries())
      assert.deepEqual(await record.listLeases({ after: lease, limit: 2 }), leases.slice(at + 1, at + 3))
    for (const { leaseId, task } of leases) {
      const own = leases.filter((lease) => lease.leaseId === leaseId)
      assert.deepEqual(await record.listLeases({ leaseId }), own)
      assert.deepEqual(
        await record.listLeases({ task }),
        leases.filter((lease) => lease.task === task),
      )
    }
    const events = await record.listEvents({ limit: 100 })
    assert.ok(events.length > 1)
    for (const [at, { sequence }] of events.entries())
      assert.deepEqual(await record.listEvents({ before: sequence, limit: 2 }), events.slice(at + 1, at + 3))
  })

  contract('forgets a node with its copies and their leases, and no other', async (record) => {
    await stageCopy(record, 'flowers', 'task-1')
    await record.addAdopted(exampleCopy('birds', { node: 'other' }), NOW_MS)
    const forgotten = await record.forgetNode(NODE, 'burnt', NOW_MS)
    assert.deepEqual(
      forgotten.map(({ dataset }) => dataset),
      ['flowers'],
    )
    const left = await record.listCopies({}, NOW_MS)
    assert.deepEqual(
      left.map(({ node }) => node),
      ['other'],
    )
    assert.deepEqual(await record.listLeases({}), [])
  })

  contract('keeps whose a node is until another claims it', async (record, second) => {
    const node = { node: NODE, cacheRoot: '/cache', policy: {}, disk: DISK, seenAtMs: NOW_MS }
    const machine = { id: 'm1', host: 'gpu-1', isLasting: true }
    const [mine, theirs] = [
      { cacheId: 'c1', machine },
      { cacheId: 'c2', machine: { ...machine, id: 'm2' } },
    ]
    assert.equal((await record.saveNode(node)).identity, undefined)
    assert.deepEqual((await record.saveNode({ ...node, identity: mine })).identity, mine)
    assert.deepEqual((await second.saveNode({ ...node, identity: theirs })).identity, mine)
    assert.equal(await second.claimNode(NODE, theirs), true)
    assert.deepEqual((await record.listNodes())[0]!.identity, theirs)
    assert.equal(await record.claimNode('nobody', mine), false)
  })

  contract('calls a node otherwise, with its copies, leases and places of stripes', async (record) => {
    await record.saveNode({ node: NODE, cacheRoot: '/cache', policy: {}, disk: DISK, seenAtMs: NOW_MS })
    const nodes = [NODE, 'other']
    await record.addAdopted(exampleCopy('flowers', { stripe: { index: 0, nodes } }), NOW_MS)
    const theirs = { copyId: 'theirs', node: 'other', stripe: { index: 1, nodes } }
    await record.addAdopted(exampleCopy('flowers', theirs), NOW_MS)
    await record.leaseCopy({ copyId: 'theirs', purpose: 'use', lease: exampleLease('task-1') }, NOW_MS)
    assert.equal((await record.renameNode('other', 'another')).length, 1)
    assert.equal((await record.listLeases({ node: 'another' })).length, 1)
    assert.equal((await record.renameNode('another', 'other')).length, 1)
    await assert.rejects(record.renameNode(NODE, 'other'), { code: 'NODE_TAKEN' })
    assert.equal((await record.renameNode(NODE, 'new')).length, 1)
    const copies = await record.listCopies({}, NOW_MS)
    assert.deepEqual(
      copies.map((copy) => [copy.node, copy.stripe]),
      [
        ['new', { index: 0, nodes: ['new', 'other'] }],
        ['other', { index: 1, nodes: ['new', 'other'] }],
      ],
    )
    assert.deepEqual(
      (await record.listNodes()).map(({ node }) => node),
      ['new'],
    )
  })

  contract('remembers nodes, and prunes history', async (record, second) => {
    const node = { node: NODE, cacheRoot: '/cache', policy: { maxDatasets: 2 }, disk: DISK, seenAtMs: NOW_MS }
    await record.saveNode(node)
    await record.saveNode({ ...node, seenAtMs: NOW_MS + 1 })
    assert.deepEqual(await second.listNodes(), [{ ...node, seenAtMs: NOW_MS + 1 }])
    const agent = { url: 'http://10.0.0.7:7070', seenAtMs: NOW_MS }
    await record.saveNode({ ...node, agent })
    await record.saveNode(node)
    assert.deepEqual(await second.listNodes(), [{ ...node, agent }], 'a command does not forget the agent')
    await record.saveNode({ ...node, agent: null })
    assert.deepEqual(await second.listNodes(), [node])
    await stageCopy(record, 'flowers', 'task-1')
    assert.ok((await record.listEvents({ limit: 10 })).length > 0)
    await record.pruneEvents(NOW_MS + 1, 1000)
    assert.deepEqual(await second.listEvents({ limit: 10 }), [])
  })
}

function compareSums(a: CopySum, b: CopySum): number {
  return JSON.stringify(Object.entries(a).sort()) < JSON.stringify(Object.entries(b).sort()) ? -1 : 1
}
