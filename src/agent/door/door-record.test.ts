import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DoorClient } from './door-client.js'
import { openDoorRecord } from './door-record.js'
import { PAGE_ROWS } from './door-wire.js'

test('the next page is asked for by the place of the last row, however long that row is', async () => {
  const asked: object[] = []
  const place = { dataset: 'flowers', node: 'a', createdAtMs: 1, copyId: 'c1', leaseId: 'l1' }
  const row = { ...place, source: { include: ['many'] }, parties: ['many'] }
  const ask = async (_: string, input: object) => {
    asked.push(input)
    return asked.length === 1 ? new Array(PAGE_ROWS).fill(row) : []
  }
  const record = openDoorRecord({ path: 'socket', ask } as unknown as DoorClient, 0)
  await record.listCopies({}, 0)
  const { leaseId, ...after } = place
  assert.deepEqual(asked[1], { after, limit: PAGE_ROWS })
  asked.length = 0
  await record.listLeases({})
  assert.deepEqual(asked[1], { after: { createdAtMs: 1, leaseId }, limit: PAGE_ROWS })
})
