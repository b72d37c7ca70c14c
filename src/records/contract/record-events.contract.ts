import assert from 'node:assert/strict'
import { NODE } from '../../testing/example-staging.js'
import { contractTest, type OpenRecord } from './contract-test.contract.js'
import type { EventFilter } from './record-requests.js'

/** How a record lists and prunes its history. */
export function recordEventsContract(engine: string, open: OpenRecord): void {
  const contract = contractTest(engine, open)

  contract('lists the events since a moment, though nodes wrote them in another order', async (record) => {
    const event = { kind: 'leased', node: NODE, copyId: null, task: null, reason: '', detail: {} } as const
    for (const [at, atMs] of [2, 7, 1, 8, 3, 9].entries())
      await record.addEvent({ ...event, dataset: at < 3 ? 'birds' : 'flowers', atMs })
    const since = async (sinceMs: number, filter: Partial<EventFilter> = {}) =>
      (await record.listEvents({ limit: 10, ...filter, sinceMs })).map(({ atMs }) => atMs)
    assert.deepEqual(await since(7), [9, 8, 7])
    assert.deepEqual(await since(7, { limit: 2 }), [9, 8])
    assert.deepEqual(await since(2, { dataset: 'birds' }), [7, 2])
    assert.deepEqual(await since(10), [])
    const [newest] = await record.listEvents({ limit: 1 })
    assert.deepEqual(await since(2, { before: newest!.sequence }), [3, 8, 7, 2])
  })

  contract('lists the time that feeds tell only to those who ask for it', async (record) => {
    const event = { node: NODE, dataset: 'birds', copyId: null, task: null, reason: '', detail: {} } as const
    for (const kind of ['leased', 'fed', 'released'] as const)
      await record.addEvent({ ...event, kind, atMs: 1 })
    const list = async (filter: Partial<EventFilter>) =>
      (await record.listEvents({ limit: 10, ...filter })).map(({ kind }) => kind)
    assert.deepEqual(await list({}), ['released', 'leased'])
    assert.deepEqual(await list({ kinds: ['fed'] }), ['fed'])
  })

  contract(
    'prunes the oldest first, as many as it was told, and leaves what is younger',
    async (record, second) => {
      const event = {
        kind: 'leased',
        node: NODE,
        dataset: 'flowers',
        copyId: null,
        task: null,
        reason: '',
      } as const
      for (const atMs of [3, 1, 4, 2, 9]) await record.addEvent({ ...event, atMs, detail: {} })
      const left = async () => (await second.listEvents({ limit: 10 })).map(({ atMs }) => atMs)
      assert.equal(await record.pruneEvents(5, 3), 3)
      assert.deepEqual(await left(), [9, 4])
      assert.equal(await record.pruneEvents(5, 3), 1)
      assert.equal(await record.pruneEvents(5, 3), 0)
      assert.deepEqual(await left(), [9])
    },
  )
}
