import assert from 'node:assert/strict'
import type { Stripe } from '../../model/copy.js'
import { exampleCopy, exampleLease, NOW_MS } from '../../testing/example-copies.js'
import { joinRequest } from '../../testing/example-staging.js'
import { contractTest, type OpenRecord } from './contract-test.contract.js'
import type { RecordStore } from './record-store.js'

const NODES = ['node-a', 'node-b', 'node-c']
const FIRST: Stripe = { index: 0, nodes: NODES }

/** Rules of every record adapter for stripes: copies beside a whole one, distinguished by place and nodes. */
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
      (await record.joinOrReserve(joinRequest('flowers', 'job', { version: 'v1' }), NOW_MS)).outcome,
      'stage',
    )
  })

  contract('lets a whole copy serve as a stripe', async (record) => {
    await add(record, 'whole')
    assert.equal(await takes(record, { stripe: FIRST }), 'whole')
    const joined = await record.joinOrReserve(joinRequest('flowers', 'job', { stripe: FIRST }), NOW_MS)
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
    const whole = await record.joinOrReserve(joinRequest('flowers', 'one'), NOW_MS)
    const stripe = await record.joinOrReserve(joinRequest('flowers', 'two', { stripe: FIRST }), NOW_MS)
    const same = await record.joinOrReserve(joinRequest('flowers', 'three', { stripe: FIRST }), NOW_MS)
    assert.deepEqual([whole.outcome, stripe.outcome, same.outcome], ['stage', 'stage', 'wait'])
    assert.deepEqual(stripe.copy.stripe, FIRST)
    assert.equal(whole.copy.stripe, undefined)
    assert.equal(same.copy.copyId, stripe.copy.copyId)
  })

  contract('finds at admission that the same stripe, or the whole, is ready already', async (record) => {
    const stripe = await record.joinOrReserve(joinRequest('flowers', 'one', { stripe: FIRST }), NOW_MS)
    const whole = await record.joinOrReserve(joinRequest('flowers', 'two'), NOW_MS)
    assert.ok(stripe.outcome === 'stage' && whole.outcome === 'stage')
    await add(record, 'ready', FIRST)
    // The listing concerns only the copy of another stripe: the whole one continues.
    assert.equal((await admit(record, whole.copy.copyId, whole.stageLeaseId)).outcome, 'admit')
    const twin = await admit(record, stripe.copy.copyId, stripe.stageLeaseId)
    assert.ok(twin.outcome === 'same-version')
    assert.equal(twin.copy.copyId, 'ready')
  })

  contract('keeps a reservation by its use lease, without a stager', async (record) => {
    const joined = await record.joinOrReserve(joinRequest('flowers', 'one', { stripe: FIRST }), NOW_MS)
    assert.ok(joined.outcome === 'stage')
    const { copyId } = joined.copy
    await admit(record, copyId, joined.stageLeaseId)
    const ended = { copyId, stageLeaseId: joined.stageLeaseId, useLeaseId: null, isForgotten: false }
    await record.endStaging(ended, NOW_MS)
    const [copy] = await record.listCopies({ copyId }, NOW_MS)
    assert.deepEqual([copy?.state, copy?.referenceCount, copy?.isBeingStaged], ['staging', 1, false])
    const resumed = await record.joinOrReserve(
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

  contract(
    'moves a stripe whose new place is taken only on another node or in another version',
    async (record) => {
      const to = ['node-a', 'node-d', 'node-c']
      const taken = { index: 0, nodes: to }
      await add(record, 'old', FIRST)
      await add(record, 'other node', taken, 'v1', 'node-b')
      await add(record, 'other version', taken, 'v2')
      const move = { dataset: 'flowers', version: 'v1', from: NODES, to, reason: 'node-b was lost' }
      const moved = await record.moveStripes(move, NOW_MS)
      assert.deepEqual(
        moved.map(({ copyId, stripe }) => [copyId, stripe]),
        [['old', taken]],
      )
    },
  )

  for (const { how, lose } of [
    {
      how: 'its node is forgotten',
      lose: (record: RecordStore) => record.forgetNode('node-c', 'lost', NOW_MS),
    },
    {
      how: 'it is deleted by hand',
      lose: (record: RecordStore) => record.forgetCopies(['stripe'], 'deleted', NOW_MS),
    },
    {
      how: 'it is evicted',
      async lose(record: RecordStore) {
        const victim = { copyId: 'stripe', reason: 'asked' }
        const [copy] = await record.listCopies({ copyId: 'stripe' }, NOW_MS)
        const plan = {
          victims: [{ ...victim, copy: copy! }],
          freedBytes: 1,
          shortfalls: [],
          evictableBytes: 1,
          evictableCopies: 1,
        }
        await record.beginEviction({ node: 'node-c', task: null }, () => plan, NOW_MS)
        await record.finishEviction('stripe', NOW_MS)
      },
    },
  ]) {
    contract(`has whole copies tell of a layout whose last stripe goes because ${how}`, async (record) => {
      await add(record, 'whole a', undefined, 'v1', 'node-a')
      await add(record, 'whole b', undefined, 'v1', 'node-b')
      await add(record, 'whole d', undefined, 'v1', 'node-d')
      await add(record, 'other version', undefined, 'v2', 'node-b')
      await add(record, 'stripe', { index: 2, nodes: NODES }, 'v1', 'node-c')
      await lose(record)
      const told = async () =>
        (await record.listCopies({ dataset: 'flowers' }, NOW_MS)).flatMap(({ copyId, layouts }) =>
          layouts ? [[copyId, layouts]] : [],
        )
      assert.deepEqual(await told(), [
        ['whole a', [NODES]],
        ['whole b', [NODES]],
      ])
      await record.renameNode('node-a', 'node-e')
      const to = ['node-e', 'node-b', 'node-d']
      const from = ['node-e', 'node-b', 'node-c']
      await record.moveStripes({ dataset: 'flowers', version: 'v1', from, to, reason: 'lost' }, NOW_MS)
      assert.deepEqual((await told()).toSorted(), [
        ['whole a', [to]],
        ['whole b', [to]],
      ])
    })
  }

  contract('renames a node in the layouts of all stripes, and leaves each its own part', async (record) => {
    await add(record, 'first', { index: 0, nodes: NODES }, 'v1', 'node-a')
    await add(record, 'second', { index: 1, nodes: NODES }, 'v1', 'node-b')
    await record.renameNode('node-b', 'node-e')
    const stripes = (await record.listCopies({ dataset: 'flowers' }, NOW_MS)).map(({ node, stripe }) => [
      node,
      stripe,
    ])
    const nodes = ['node-a', 'node-e', 'node-c']
    assert.deepEqual(stripes.toSorted(), [
      ['node-a', { index: 0, nodes }],
      ['node-e', { index: 1, nodes }],
    ])
  })

  contract('leaves the telling to stripes while one is left', async (record) => {
    await add(record, 'whole', undefined, 'v1', 'node-a')
    await add(record, 'left', { index: 1, nodes: NODES }, 'v1', 'node-b')
    await add(record, 'stripe', { index: 2, nodes: NODES }, 'v1', 'node-c')
    await record.forgetNode('node-c', 'lost', NOW_MS)
    const [whole] = await record.listCopies({ copyId: 'whole' }, NOW_MS)
    assert.equal(whole?.layouts, undefined)
  })
}
