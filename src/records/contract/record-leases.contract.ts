import assert from 'node:assert/strict'
import { EXAMPLE_PROCESS, exampleLease, NOW_MS } from '../../testing/example-copies.js'
import {
  admitRequest,
  decideFor,
  evictIdle,
  joinRequest,
  NODE,
  stageCopy,
} from '../../testing/example-staging.js'
import { contractTest, type OpenRecord } from './contract-test.contract.js'

/** Rules of every record adapter for leases, and for the evictions that they forbid. */
export function recordLeasesContract(engine: string, open: OpenRecord): void {
  const contract = contractTest(engine, open)

  contract('renews the lease of the same task instead of adding one', async (record) => {
    await stageCopy(record, 'flowers', 'task-1')
    const lease = exampleLease('task-1', { expiresAtMs: NOW_MS + 5 })
    await record.leaseReady({ dataset: 'flowers', node: NODE, lease }, NOW_MS + 1)
    const leases = await record.listLeases({ dataset: 'flowers' })
    assert.deepEqual(
      leases.map(({ task, renewedAtMs, expiresAtMs }) => ({ task, renewedAtMs, expiresAtMs })),
      [{ task: 'task-1', renewedAtMs: NOW_MS + 1, expiresAtMs: NOW_MS + 5 }],
    )
  })

  contract(
    'lists the leases that may be over: expired ones, and those whose holder can be gone',
    async (record) => {
      await stageCopy(record, 'flowers', 'staging-task')
      for (const lease of [
        exampleLease('lasts'),
        exampleLease('of-user', { holder: { kind: 'ttl', userId: 7 } }),
        exampleLease('expired', { expiresAtMs: NOW_MS + 5 }),
        exampleLease('process', { holder: EXAMPLE_PROCESS, expiresAtMs: null }),
        exampleLease('job', { holder: { kind: 'slurm', jobId: '7' } }),
      ])
        await record.leaseReady({ dataset: 'flowers', node: NODE, lease }, NOW_MS)
      const found = await record.listLeases({ node: NODE, mayBeOverAtMs: NOW_MS + 5 })
      assert.deepEqual(found.map(({ task }) => task).sort(), ['expired', 'job', 'process'])
    },
  )

  contract('keeps the parties of the task that used a copy last', async (record, second) => {
    await stageCopy(record, 'flowers', 'task-1')
    const use = async (parties?: readonly string[]) => {
      const lease = exampleLease('task-2', parties ? { parties } : {})
      await record.leaseReady({ dataset: 'flowers', node: NODE, lease }, NOW_MS)
      const [copy] = await second.listCopies({ dataset: 'flowers' }, NOW_MS)
      return copy?.parties
    }
    assert.equal(await use(), undefined)
    assert.deepEqual(await use(['user:ada', 'account:nlp']), ['user:ada', 'account:nlp'])
    assert.deepEqual(await use(), ['user:ada', 'account:nlp']) // not given: unchanged
    assert.deepEqual(await use(['user:bob']), ['user:bob'])
  })

  contract('keeps the parties of the last refresh of a copy whose source had not changed', async (record) => {
    await stageCopy(record, 'flowers', 'task-1')
    const lease = exampleLease('task-2', { parties: ['user:bob'] })
    const joined = await record.joinOrReserve(
      joinRequest('flowers', 'task-2', { isRefresh: true, lease }),
      NOW_MS,
    )
    assert.ok(joined.outcome === 'stage')
    const request = admitRequest(joined.copy.copyId, joined.stageLeaseId, 'v1')
    const admitted = await record.admit(request, () => assert.fail('it is here'), NOW_MS)
    assert.ok(admitted.outcome === 'same-version')
    const [copy] = await record.listCopies({ dataset: 'flowers' }, NOW_MS)
    assert.deepEqual(
      [copy?.lastTask, copy?.parties, admitted.copy.parties],
      ['task-2', ['user:bob'], ['user:bob']],
    )
  })

  contract('never evicts what is leased or locked, and evicts it once idle', async (record, second) => {
    await stageCopy(record, 'flowers', 'task-1')
    assert.deepEqual((await evictIdle(second)).victims, [])
    assert.equal(await record.releaseUses({ task: 'task-1', dataset: 'flowers' }, NOW_MS), 1)
    await record.setLock({ dataset: 'flowers' }, { by: 'ops', reason: 'keep', atMs: NOW_MS }, NOW_MS)
    assert.deepEqual((await evictIdle(second)).victims, [])
    await record.setLock({ dataset: 'flowers' }, null, NOW_MS)
    const plan = await evictIdle(second)
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
    await stageCopy(record, 'flowers', 'task-1')
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
    await stageCopy(record, 'flowers', 'task-1')
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
    await stageCopy(record, 'old', 'task-1', 'v1', 400)
    const joined = await record.joinOrReserve(joinRequest('new', 'task-2'), NOW_MS)
    assert.equal(joined.outcome, 'stage')
    const { copyId } = joined.copy
    const request = admitRequest(copyId, joined.stageLeaseId, 'v1', 200)
    const refused = await record.admit(request, decideFor(copyId, 200), NOW_MS)
    assert.equal(refused.outcome, 'refuse')
    assert.deepEqual((await record.listCopies({ states: ['ready'] }, NOW_MS)).length, 1)
    await record.releaseUses({ task: 'task-1' }, NOW_MS)
    const admitted = await record.admit(request, decideFor(copyId, 200), NOW_MS)
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

  contract('keeps when a task first read during the download', async (record) => {
    await stageCopy(record, 'flowers', 'task-1')
    const [{ leaseId, readAtMs } = assert.fail()] = await record.listLeases({})
    assert.equal(readAtMs, undefined)
    for (const nowMs of [NOW_MS + 1, NOW_MS + 2]) assert.equal(await record.noteReading(leaseId, nowMs), true)
    assert.equal(await record.noteReading('unknown', NOW_MS), false)
    assert.equal((await record.listLeases({}))[0]!.readAtMs, NOW_MS + 1)
  })

  contract('hands a lease over to a holder that has one already by making them one', async (record) => {
    await stageCopy(record, 'flowers', 'task-1')
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
}
