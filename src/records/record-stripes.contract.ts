import assert from 'node:assert/strict'
import type { Stripe } from '../model/copy.js'
import { exampleCopy, exampleLease, NOW_MS } from '../testing/example-copies.js'
import { joinRequest } from '../testing/example-staging.js'
import { contractTest, type OpenRecord } from './contract-test.contract.js'
import type { RecordStore } from './record-store.js'

const NODES = ['node-a', 'node-b', 'node-c']
const FIRST: Stripe = { index: 0, nodes: NODES }

/** What every record adapter must do with stripes: copies beside a whole one, told apart by place and nodes. */
export function recordStripesContract(engine: string, open: OpenRecord): void {
  const contract = contractTest(engine, open)
  const add = (record: RecordStore, copyId: string, stripe?: Stripe, version = 'v1', node = 'node-a') =>
    record.addAdopted(
      exampleCopy('flowers', { copyId, node, version, readyAtMs: NOW_MS, ...(stripe && { stripe }) }),
      NOW_MS,
    )
  const takes = async (record: RecordStore, wanted: { stripe?: Stripe; version?: string }) => {
    const request = { dataset: 'flowers', node: 'node-a', lease: exampleLease('job'), ...wanted }
    return (await record.leaseReady(request, NOW_MS))?.copy.copyId
  }
  const admit = (record: RecordStore, copyId: string, stageLeaseId: string) => {
    const sizes = { files: 1, contentBytes: 1, chargedBytes: 1, chargedInodes: 1 }
    const plan = { victims: [], freedBytes: 0, shortfalls: [], evictableBytes: 0, evictableCopies: 0 }
    return record.admit(
      { copyId, stageLeaseId, version: 'v1', ...sizes },
      () => ({ outcome: 'admit', plan }),
      NOW_MS,
    )
  }

  contract('never gives a stripe to who wants the whole, nor another stripe', async (record) => {
    assert.equal(await add(record, 'stripe', FIRST), true)
    assert.equal(await takes(record, {}), undefined)
    assert.equal(await takes(record, { stripe: FIRST }), 'stripe')
    assert.equal(await takes(record, { stripe: { index: 1, nodes: NODES } }), undefined)
    assert.equal(
      await takes(record, { stripe: { index: 0, nodes: ['node-a', 'node-c', 'node-b'] } }),
      undefined,
    )
    assert.equal(await takes(record, { stripe: FIRST, version: 'v2' }), undefined)
    assert.equal(
      (await record.joinStaging(joinRequest('flowers', 'job', { version: 'v1' }), NOW_MS)).outcome,
      'stage',
    )
  })

  contract('lets a whole copy serve as a stripe', async (record) => {
    await add(record, 'whole')
    assert.equal(await takes(record, { stripe: FIRST }), 'whole')
    const joined = await record.joinStaging(joinRequest('flowers', 'job', { stripe: FIRST }), NOW_MS)
    assert.deepEqual([joined.outcome, joined.copy.copyId], ['ready', 'whole'])
  })

  contract('keeps a whole copy and stripes of one version side by side, and each once', async (record) => {
    const other = { index: 0, nodes: ['node-a', 'node-b'] }
    assert.deepEqual(
      [await add(record, '1'), await add(record, '2', FIRST), await add(record, '3', other)],
      [true, true, true],
    )
    assert.deepEqual([await add(record, '4'), await add(record, '5', FIRST)], [false, false])
    assert.equal((await record.listCopies({ dataset: 'flowers' }, NOW_MS)).length, 3)
  })

  contract('stages a stripe beside the whole, and joins only the staging of the same', async (record) => {
    const whole = await record.joinStaging(joinRequest('flowers', 'one'), NOW_MS)
    const stripe = await record.joinStaging(joinRequest('flowers', 'two', { stripe: FIRST }), NOW_MS)
    const same = await record.joinStaging(joinRequest('flowers', 'three', { stripe: FIRST }), NOW_MS)
    assert.deepEqual([whole.outcome, stripe.outcome, same.outcome], ['stage', 'stage', 'wait'])
    assert.deepEqual(stripe.copy.stripe, FIRST)
    assert.equal(whole.copy.stripe, undefined)
    assert.equal(same.copy.copyId, stripe.copy.copyId)
  })

  contract('finds at admission that the same stripe, or the whole, is ready already', async (record) => {
    const stripe = await record.joinStaging(joinRequest('flowers', 'one', { stripe: FIRST }), NOW_MS)
    const whole = await record.joinStaging(joinRequest('flowers', 'two'), NOW_MS)
    assert.ok(stripe.outcome === 'stage' && whole.outcome === 'stage')
    await add(record, 'ready', FIRST)
    // What was listed is of another stripe's copy only: the whole goes on.
    assert.equal((await admit(record, whole.copy.copyId, whole.stageLeaseId)).outcome, 'admit')
    const twin = await admit(record, stripe.copy.copyId, stripe.stageLeaseId)
    assert.ok(twin.outcome === 'same-version')
    assert.equal(twin.copy.copyId, 'ready')
  })

  contract('keeps a reservation by its use lease, without a stager', async (record) => {
    const joined = await record.joinStaging(joinRequest('flowers', 'one', { stripe: FIRST }), NOW_MS)
    assert.ok(joined.outcome === 'stage')
    const { copyId } = joined.copy
    await admit(record, copyId, joined.stageLeaseId)
    const ended = { copyId, stageLeaseId: joined.stageLeaseId, useLeaseId: null, isForgotten: false }
    await record.endStaging(ended, NOW_MS)
    const [copy] = await record.listCopies({ copyId }, NOW_MS)
    assert.deepEqual([copy?.state, copy?.referenceCount, copy?.isBeingStaged], ['staging', 1, false])
    const resumed = await record.joinStaging(
      joinRequest('flowers', 'one', { stripe: FIRST, version: 'v1' }),
      NOW_MS,
    )
    assert.ok(resumed.outcome === 'stage')
    assert.deepEqual([resumed.isResumed, resumed.copy.copyId], [true, copyId])
    assert.equal(resumed.leaseId, joined.leaseId)
  })

  contract('moves the stripes that stay to a new list of nodes, once', async (record) => {
    const to = ['node-a', 'node-d', 'node-c']
    for (const [index, node] of NODES.entries()) await add(record, node, { index, nodes: NODES }, 'v1', node)
    await add(record, 'other version', FIRST, 'v2')
    const move = { dataset: 'flowers', version: 'v1', from: NODES, to, reason: 'node-b was lost' }
    const moved = await record.moveStripes(move, NOW_MS)
    assert.deepEqual(
      moved.map(({ node }) => node),
      ['node-a', 'node-c'],
    )
    const copies = await record.listCopies({ dataset: 'flowers' }, NOW_MS)
    assert.deepEqual(
      copies.map(({ copyId, stripe }) => [copyId, stripe?.index, stripe?.nodes.join()]).sort(),
      [
        ['node-a', 0, to.join()],
        ['node-b', 1, NODES.join()],
        ['node-c', 2, to.join()],
        ['other version', 0, NODES.join()],
      ],
    )
    const [event] = await record.listEvents({ copyId: 'node-a', limit: 1 })
    assert.deepEqual([event?.kind, event?.reason], ['repaired', 'node-b was lost'])
    assert.deepEqual(await record.moveStripes(move, NOW_MS), [])
  })

  contract('leaves a stripe where its new place is taken already', async (record) => {
    const to = ['node-a', 'node-d', 'node-c']
    await add(record, 'old', FIRST)
    await add(record, 'new', { index: 0, nodes: to })
    const move = { dataset: 'flowers', version: 'v1', from: NODES, to, reason: 'node-b was lost' }
    assert.deepEqual(await record.moveStripes(move, NOW_MS), [])
  })
}
