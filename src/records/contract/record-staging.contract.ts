import assert from 'node:assert/strict'
import { planAdmission } from '../../policy/plan-admission.js'
import { DISK, exampleCopy, exampleLease, NOW_MS } from '../../testing/example-copies.js'
import { admitRequest, decideFor, joinRequest, NODE, stageCopy } from '../../testing/example-staging.js'
import { contractTest, type OpenRecord } from './contract-test.contract.js'

/** Rules of every record adapter for copies before they are ready. */
export function recordStagingContract(engine: string, open: OpenRecord): void {
  const contract = contractTest(engine, open)

  contract(
    'lets one of two callers stage a dataset and makes the other wait with a lease',
    async (record, second) => {
      const first = await record.joinOrReserve(joinRequest('flowers', 'task-1'), NOW_MS)
      const other = await second.joinOrReserve(joinRequest('flowers', 'task-2'), NOW_MS)
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
    const first = await record.joinOrReserve(joinRequest('flowers', 'task-1'), NOW_MS)
    assert.equal(first.outcome, 'stage')
    await record.expireLeases([{ leaseId: first.stageLeaseId, reason: 'process 7 is gone' }], NOW_MS)
    const heir = await second.joinOrReserve(joinRequest('flowers', 'task-2'), NOW_MS)
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
      const first = await record.joinOrReserve(joinRequest('flowers', 'task-1'), NOW_MS)
      assert.equal(first.outcome, 'stage')
      const laterMs = NOW_MS + 61_000
      const heir = await second.joinOrReserve(joinRequest('flowers', 'task-2'), laterMs)
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
      const outcome = await record.admit(admitRequest(copyId, first.stageLeaseId), decideFor(copyId), laterMs)
      assert.equal(outcome.outcome, 'lost')
    },
  )

  contract(
    'moves a copy from reserved over staging to ready and shows it in cache_record',
    async (record, second) => {
      const joined = await record.joinOrReserve(joinRequest('flowers', 'task-1'), NOW_MS)
      assert.equal(joined.outcome, 'stage')
      const { copyId } = joined.copy
      await record.admit(admitRequest(copyId, joined.stageLeaseId), decideFor(copyId), NOW_MS)
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
      await stageCopy(record, 'birds', 'task-2')
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

  contract('gives the ready copy to a refresh that finds nothing new', async (record) => {
    const first = await stageCopy(record, 'flowers', 'task-1')
    const joined = await record.joinOrReserve(joinRequest('flowers', 'task-2', { isRefresh: true }), NOW_MS)
    assert.equal(joined.outcome, 'stage')
    const outcome = await record.admit(
      admitRequest(joined.copy.copyId, joined.stageLeaseId, 'v1'),
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
    const joined = await record.joinOrReserve(joinRequest('flowers', 'task-1'), NOW_MS)
    assert.equal(joined.outcome, 'stage')
    await record.endStaging(
      {
        copyId: joined.copy.copyId,
        stageLeaseId: joined.stageLeaseId,
        useLeaseId: joined.leaseId,
        isForgotten: true,
        failure: { id: 'c0ffee00c0ff', code: 'SOURCE_NOT_FOUND', message: 'no bucket', hint: 'look' },
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
    assert.deepEqual(await record.listEvents({ failureId: 'c0ffee00c0ff', limit: 2 }), [event])
    assert.deepEqual(await record.listEvents({ failureId: 'c0ffee00c0f0', limit: 2 }), [])
  })

  contract('leaves an interrupted staging for the next one, idle and evictable', async (record) => {
    const joined = await record.joinOrReserve(joinRequest('flowers', 'task-1'), NOW_MS)
    assert.equal(joined.outcome, 'stage')
    const { copyId } = joined.copy
    await record.admit(admitRequest(copyId, joined.stageLeaseId), decideFor(copyId), NOW_MS)
    await record.endStaging(
      { copyId, stageLeaseId: joined.stageLeaseId, useLeaseId: joined.leaseId, isForgotten: false },
      NOW_MS,
    )
    const next = await record.joinOrReserve(joinRequest('flowers', 'task-2'), NOW_MS)
    assert.deepEqual([next.outcome, next.copy.copyId, next.copy.state], ['stage', copyId, 'staging'])
  })

  contract('adds no adopted copy beside a staging of the same version', async (record) => {
    const joined = await record.joinOrReserve(joinRequest('flowers', 'task-1'), NOW_MS)
    assert.equal(joined.outcome, 'stage')
    const { copyId } = joined.copy
    await record.admit(admitRequest(copyId, joined.stageLeaseId, 'v1'), decideFor(copyId), NOW_MS)
    const { referenceCount: _, isBeingStaged: __, ...copy } = exampleCopy('flowers', { version: 'v1' })
    assert.equal(await record.addAdopted(copy, NOW_MS), false)
    assert.equal(await record.addAdopted({ ...copy, version: 'v2' }, NOW_MS), true)
  })

  contract(
    'charges no copy that is still being staged, though others on its node are ready',
    async (record) => {
      await stageCopy(record, 'birds', 'task-2')
      const joined = await record.joinOrReserve(joinRequest('flowers', 'task-1'), NOW_MS)
      assert.equal(joined.outcome, 'stage')
      const { copyId } = joined.copy
      const request = { copyId, chargedBytes: 300, chargedInodes: 7, task: 'task-1' }
      const decide = () => assert.fail('nothing is to be decided')
      assert.deepEqual(await record.chargeCopy(request, decide, NOW_MS), { outcome: 'gone' })
    },
  )

  contract(
    'charges a ready copy for more, and evicts for it what the policy allows',
    async (record, second) => {
      const { copy, leaseId } = await stageCopy(record, 'flowers', 'task-1')
      const idle = await stageCopy(record, 'birds', 'task-2')
      await record.releaseUses({ leaseId: idle.leaseId }, NOW_MS)
      const { copyId } = copy
      const charge = (bytes: number) =>
        record.chargeCopy(
          { copyId, chargedBytes: 100 + bytes, chargedInodes: 7, task: 'task-1' },
          (copies) =>
            planAdmission({
              policy: { maxPercent: 50 },
              disk: DISK,
              copies,
              request: { datasets: 0, bytes, inodes: 2 },
              requestCopyId: 'none',
            }),
          NOW_MS,
        )
      assert.equal((await charge(500)).outcome, 'refuse')
      const [same] = await second.listCopies({ copyId }, NOW_MS)
      assert.equal(same?.chargedBytes, 100, 'what was refused is not charged')
      assert.equal((await charge(200)).outcome, 'admit')
      const [charged] = await second.listCopies({ copyId }, NOW_MS)
      assert.deepEqual([charged?.chargedBytes, charged?.chargedInodes, charged?.writtenBytes], [300, 7, 300])
      assert.equal((await charge(150)).outcome, 'admit')
      const states = (await second.listCopies({}, NOW_MS)).map(({ dataset, state }) => [dataset, state])
      assert.deepEqual(states, [
        ['birds', 'evicting'],
        ['flowers', 'ready'],
      ])
      assert.equal((await charge(1)).outcome, 'wait')
      await record.releaseUses({ leaseId }, NOW_MS)
      await record.forgetCopies([copyId], 'gone from disk', NOW_MS)
      assert.equal((await charge(1)).outcome, 'gone')
    },
  )
}
