import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { planAdmission } from '../policy/plan-admission.js'
import { planEviction } from '../policy/plan-eviction.js'
import { DISK, exampleCopy, exampleDataset, exampleLease, NOW_MS } from '../testing/example-copies.js'
import type { JoinRequest, RecordStore } from './record-store.js'

const NODE = 'node-a'
const NEED_NOTHING = { datasets: 0, bytes: 0, inodes: 0 }

/** What every record adapter must do. `open` gives a new empty record; `openAgain` a second client of the same. */
export function recordStoreContract(
  engine: string,
  open: (context: TestContext) => Promise<{ record: RecordStore; openAgain: () => Promise<RecordStore> }>,
): void {
  const contract = (title: string, body: (record: RecordStore, second: RecordStore) => Promise<void>) =>
    test(`${engine} record ${title}`, async (context) => {
      const { record, openAgain } = await open(context)
      await body(record, await openAgain())
    })

  const join = (dataset: string, task: string, changes: Partial<JoinRequest> = {}): JoinRequest => ({
    dataset,
    node: NODE,
    lease: exampleLease(task),
    stager: { ...exampleLease(task), expiresAtMs: NOW_MS + 60_000 },
    source: exampleDataset(dataset),
    origin: 's3',
    directoryOf: (copyId) => `/cache/staging/${copyId}`,
    isRefresh: false,
    ...changes,
  })
  const admission = (copyId: string, stageLeaseId: string, version = 'v1', chargedBytes = 100) => ({
    copyId,
    stageLeaseId,
    version,
    files: 3,
    contentBytes: chargedBytes,
    chargedBytes,
    chargedInodes: 5,
  })
  const decide =
    (copyId: string, chargedBytes = 100) =>
    (copies: Parameters<Parameters<RecordStore['admit']>[1]>[0]) =>
      planAdmission({
        policy: { maxPercent: 50 },
        disk: DISK,
        copies,
        request: { datasets: 1, bytes: chargedBytes, inodes: 5 },
        requestCopyId: copyId,
      })
  const stage = async (record: RecordStore, dataset: string, task: string, version = 'v1', bytes = 100) => {
    const joined = await record.joinStaging(join(dataset, task, { isRefresh: true }), NOW_MS)
    assert.equal(joined.outcome, 'stage')
    const { copyId } = joined.copy
    const admitted = await record.admit(
      admission(copyId, joined.stageLeaseId, version, bytes),
      decide(copyId, bytes),
      NOW_MS,
    )
    assert.equal(admitted.outcome, 'admit')
    const isReady = await record.markReady(
      {
        copyId,
        stageLeaseId: joined.stageLeaseId,
        directory: `/cache/copies/${dataset}/${version}`,
        path: `/cache/copies/${dataset}/${version}/files`,
        chargedBytes: bytes,
        chargedInodes: 5,
        reason: 'staged',
        detail: {},
      },
      NOW_MS,
    )
    assert.equal(isReady, true)
    return joined
  }
  const evictAll = (record: RecordStore) =>
    record.beginEviction(
      NODE,
      (copies) =>
        planEviction({
          policy: { maxDatasets: 0 },
          disk: DISK,
          copies,
          request: NEED_NOTHING,
          accept: 'part',
        }),
      null,
      NOW_MS,
    )

  contract(
    'keeps datasets until they are removed, and refuses to while they have copies',
    async (record, second) => {
      const flowers = exampleDataset('flowers', { endpoint: 'http://127.0.0.1:9000', include: ['**/*.jpg'] })
      await record.saveDataset(flowers, NOW_MS)
      assert.deepEqual(await second.findDataset('flowers'), flowers)
      await stage(record, 'flowers', 'task-1')
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
    'lets one of two callers stage a dataset and makes the other wait with a lease',
    async (record, second) => {
      const first = await record.joinStaging(join('flowers', 'task-1'), NOW_MS)
      const other = await second.joinStaging(join('flowers', 'task-2'), NOW_MS)
      assert.equal(first.outcome, 'stage')
      assert.equal(other.outcome, 'wait')
      assert.equal(other.copy.copyId, first.copy.copyId)
      const [copy] = await record.listCopies({ dataset: 'flowers' }, NOW_MS)
      assert.deepEqual(
        { state: copy?.state, references: copy?.referenceCount, isBeingStaged: copy?.isBeingStaged },
        { state: 'reserved', references: 2, isBeingStaged: true },
      )
    },
  )

  contract('hands the staging of a stager that ended to the next one', async (record, second) => {
    const first = await record.joinStaging(join('flowers', 'task-1'), NOW_MS)
    assert.equal(first.outcome, 'stage')
    await record.expireLeases([{ leaseId: first.stageLeaseId, reason: 'process 7 is gone' }], NOW_MS)
    const heir = await second.joinStaging(join('flowers', 'task-2'), NOW_MS)
    assert.equal(heir.outcome, 'stage')
    assert.deepEqual([heir.isResumed, heir.copy.copyId], [true, first.copy.copyId])
    const progress = { copyId: first.copy.copyId, writtenBytes: 1, expiresAtMs: null }
    assert.equal(
      await record.reportProgress({ ...progress, stageLeaseId: first.stageLeaseId }, NOW_MS),
      false,
    )
    assert.equal(await record.reportProgress({ ...progress, stageLeaseId: heir.stageLeaseId }, NOW_MS), true)
  })

  contract(
    'starts anew beside a stager that fell silent: it may still be writing',
    async (record, second) => {
      const first = await record.joinStaging(join('flowers', 'task-1'), NOW_MS)
      assert.equal(first.outcome, 'stage')
      const laterMs = NOW_MS + 61_000
      const heir = await second.joinStaging(join('flowers', 'task-2'), laterMs)
      assert.equal(heir.outcome, 'stage')
      assert.equal(heir.isResumed, false)
      const states = (await record.listCopies({}, laterMs)).map(
        ({ copyId, state }) => [copyId, state] as const,
      )
      assert.deepEqual(
        new Map(states),
        new Map([
          [first.copy.copyId, 'evicting'],
          [heir.copy.copyId, 'reserved'],
        ]),
      )
      const { copyId } = first.copy
      const outcome = await record.admit(admission(copyId, first.stageLeaseId), decide(copyId), laterMs)
      assert.equal(outcome.outcome, 'lost')
    },
  )

  contract(
    'moves a copy from reserved over staging to ready and shows it in cache_record',
    async (record, second) => {
      const joined = await record.joinStaging(join('flowers', 'task-1'), NOW_MS)
      assert.equal(joined.outcome, 'stage')
      const { copyId } = joined.copy
      await record.admit(admission(copyId, joined.stageLeaseId), decide(copyId), NOW_MS)
      assert.equal(
        await record.reportProgress(
          { copyId, stageLeaseId: joined.stageLeaseId, writtenBytes: 42, expiresAtMs: null },
          NOW_MS,
        ),
        true,
      )
      const [staging] = await second.listCopies({}, NOW_MS)
      assert.deepEqual(
        [staging?.state, staging?.chargedBytes, staging?.writtenBytes, staging?.version],
        ['staging', 100, 42, 'v1'],
      )
      await stage(record, 'birds', 'task-2')
      const used = await second.leaseReady(
        { dataset: 'birds', node: NODE, lease: exampleLease('task-3') },
        NOW_MS + 5,
      )
      assert.deepEqual([used?.copy.lastTask, used?.copy.lastUsedAtMs], ['task-3', NOW_MS + 5])
      assert.equal(
        await second.leaseReady({ dataset: 'flowers', node: NODE, lease: exampleLease('t') }, NOW_MS),
        undefined,
      )
      assert.equal(
        await second.leaseReady({ dataset: 'birds', node: 'other', lease: exampleLease('t') }, NOW_MS),
        undefined,
      )
    },
  )

  contract('renews the lease of the same task instead of adding one', async (record) => {
    await stage(record, 'flowers', 'task-1')
    const lease = exampleLease('task-1', { expiresAtMs: NOW_MS + 5 })
    await record.leaseReady({ dataset: 'flowers', node: NODE, lease }, NOW_MS + 1)
    const leases = await record.listLeases({ dataset: 'flowers' })
    assert.deepEqual(
      leases.map(({ task, renewedAtMs, expiresAtMs }) => ({ task, renewedAtMs, expiresAtMs })),
      [{ task: 'task-1', renewedAtMs: NOW_MS + 1, expiresAtMs: NOW_MS + 5 }],
    )
  })

  contract('never evicts what is leased or locked, and evicts it once idle', async (record, second) => {
    await stage(record, 'flowers', 'task-1')
    assert.deepEqual((await evictAll(second)).victims, [])
    assert.equal(await record.releaseUses({ task: 'task-1', dataset: 'flowers' }, NOW_MS), 1)
    await record.setLock({ dataset: 'flowers' }, { by: 'ops', reason: 'keep', atMs: NOW_MS }, NOW_MS)
    assert.deepEqual((await evictAll(second)).victims, [])
    await record.setLock({ dataset: 'flowers' }, null, NOW_MS)
    const plan = await evictAll(second)
    assert.deepEqual(
      plan.victims.map(({ copy }) => copy.dataset),
      ['flowers'],
    )
    assert.equal(
      await record.leaseReady({ dataset: 'flowers', node: NODE, lease: exampleLease('t') }, NOW_MS),
      undefined,
    )
    const { copyId } = plan.victims[0]!.copy
    assert.equal(await record.finishEviction(copyId, NOW_MS), true)
    assert.equal(await second.finishEviction(copyId, NOW_MS), false)
    assert.deepEqual(await record.listCopies({}, NOW_MS), [])
    const [evicted] = await record.listEvents({ dataset: 'flowers', kinds: ['evicted'], limit: 5 })
    assert.equal(evicted?.reason, 'least recently used')
  })

  contract('does not count a lease after its expiry, and expires it with a reason', async (record) => {
    await stage(record, 'flowers', 'task-1')
    const laterMs = NOW_MS + 86_400_000
    assert.equal((await record.listCopies({}, laterMs))[0]?.referenceCount, 0)
    const ended = await record.expireLeases([], laterMs)
    assert.deepEqual(
      ended.map(({ task }) => task),
      ['task-1'],
    )
    assert.deepEqual(await record.listLeases({}), [])
    const [event] = await record.listEvents({ kinds: ['lease-expired'], limit: 1 })
    assert.match(event?.reason ?? '', /task-1 .*expired at 2026-01-03/)
  })

  contract('ends the leases of holders found dead and leaves the others', async (record) => {
    await stage(record, 'flowers', 'task-1')
    const alive = await record.leaseReady(
      { dataset: 'flowers', node: NODE, lease: exampleLease('task-2') },
      NOW_MS,
    )
    const dead = (await record.listLeases({ dataset: 'flowers' })).find(({ task }) => task === 'task-1')
    const ended = await record.expireLeases([{ leaseId: dead!.leaseId, reason: 'process 7 is gone' }], NOW_MS)
    assert.deepEqual(
      ended.map(({ leaseId }) => leaseId),
      [dead!.leaseId],
    )
    assert.deepEqual(
      (await record.listLeases({})).map(({ leaseId }) => leaseId),
      [alive!.leaseId],
    )
  })

  contract('admits with an eviction in one step, and refuses without touching anything', async (record) => {
    await stage(record, 'old', 'task-1', 'v1', 400)
    const joined = await record.joinStaging(join('new', 'task-2'), NOW_MS)
    assert.equal(joined.outcome, 'stage')
    const { copyId } = joined.copy
    const request = admission(copyId, joined.stageLeaseId, 'v1', 200)
    const refused = await record.admit(request, decide(copyId, 200), NOW_MS)
    assert.equal(refused.outcome, 'refuse')
    assert.deepEqual((await record.listCopies({ states: ['ready'] }, NOW_MS)).length, 1)
    await record.releaseUses({ task: 'task-1' }, NOW_MS)
    const admitted = await record.admit(request, decide(copyId, 200), NOW_MS)
    assert.equal(admitted.outcome, 'admit')
    assert.deepEqual(
      (await record.listCopies({}, NOW_MS)).map(({ dataset, state, chargedBytes }) => [
        dataset,
        state,
        chargedBytes,
      ]),
      [
        ['new', 'staging', 200],
        ['old', 'evicting', 400],
      ],
    )
  })

  contract('gives the ready copy to a refresh that finds nothing new', async (record) => {
    const first = await stage(record, 'flowers', 'task-1')
    const joined = await record.joinStaging(join('flowers', 'task-2', { isRefresh: true }), NOW_MS)
    assert.equal(joined.outcome, 'stage')
    const outcome = await record.admit(
      admission(joined.copy.copyId, joined.stageLeaseId, 'v1'),
      () => assert.fail('an existing version needs no admission'),
      NOW_MS,
    )
    assert.equal(outcome.outcome, 'same-version')
    assert.equal(outcome.copy.copyId, first.copy.copyId)
    const copies = await record.listCopies({}, NOW_MS)
    assert.deepEqual(
      copies.map(({ copyId, referenceCount }) => ({ copyId, referenceCount })),
      [{ copyId: first.copy.copyId, referenceCount: 2 }],
    )
  })

  contract('forgets a failed staging and keeps its reason for those who wait', async (record) => {
    const joined = await record.joinStaging(join('flowers', 'task-1'), NOW_MS)
    assert.equal(joined.outcome, 'stage')
    await record.endStaging(
      {
        copyId: joined.copy.copyId,
        stageLeaseId: joined.stageLeaseId,
        useLeaseId: joined.leaseId,
        isForgotten: true,
        failure: { code: 'SOURCE_NOT_FOUND', message: 'no bucket', hint: 'look' },
      },
      NOW_MS,
    )
    assert.deepEqual(await record.listCopies({}, NOW_MS), [])
    assert.deepEqual(await record.listLeases({}), [])
    const [event] = await record.listEvents({
      copyId: joined.copy.copyId,
      kinds: ['staging-failed'],
      limit: 1,
    })
    assert.deepEqual([event?.reason, event?.detail.code], ['no bucket', 'SOURCE_NOT_FOUND'])
  })

  contract('leaves an interrupted staging for the next one, idle and evictable', async (record) => {
    const joined = await record.joinStaging(join('flowers', 'task-1'), NOW_MS)
    assert.equal(joined.outcome, 'stage')
    const { copyId } = joined.copy
    await record.admit(admission(copyId, joined.stageLeaseId), decide(copyId), NOW_MS)
    await record.endStaging(
      { copyId, stageLeaseId: joined.stageLeaseId, useLeaseId: joined.leaseId, isForgotten: false },
      NOW_MS,
    )
    const next = await record.joinStaging(join('flowers', 'task-2'), NOW_MS)
    assert.deepEqual([next.outcome, next.copy.copyId, next.copy.state], ['stage', copyId, 'staging'])
  })

  contract('adds no adopted copy beside a staging of the same version', async (record) => {
    const joined = await record.joinStaging(join('flowers', 'task-1'), NOW_MS)
    assert.equal(joined.outcome, 'stage')
    const { copyId } = joined.copy
    await record.admit(admission(copyId, joined.stageLeaseId, 'v1'), decide(copyId), NOW_MS)
    const { referenceCount: _, isBeingStaged: __, ...copy } = exampleCopy('flowers', { version: 'v1' })
    assert.equal(await record.addAdopted(copy, NOW_MS), false)
    assert.equal(await record.addAdopted({ ...copy, version: 'v2' }, NOW_MS), true)
  })

  contract('hands a lease over to a holder that has one already by making them one', async (record) => {
    await stage(record, 'flowers', 'task-1')
    const holder = { kind: 'slurm', jobId: '7' } as const
    const request = { dataset: 'flowers', node: NODE }
    const first = await record.leaseReady({ ...request, lease: exampleLease('task-1') }, NOW_MS)
    await record.leaseReady({ ...request, lease: exampleLease('task-1', { holder }) }, NOW_MS)
    assert.equal((await record.listLeases({})).length, 2)
    assert.equal(await record.handOverLease(first!.leaseId, holder, NOW_MS), true)
    const leases = await record.listLeases({})
    assert.deepEqual(
      leases.map((lease) => [lease.leaseId, lease.holder.kind]),
      [[first!.leaseId, 'slurm']],
    )
  })

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

  contract('forgets a node with its copies and their leases, and no other', async (record) => {
    await stage(record, 'flowers', 'task-1')
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
    await stage(record, 'flowers', 'task-1')
    assert.ok((await record.listEvents({ limit: 10 })).length > 0)
    await record.pruneEvents(NOW_MS + 1)
    assert.deepEqual(await second.listEvents({ limit: 10 }), [])
  })
}
