import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeFedTime, type FedTime } from '../../model/fed-time.js'
import { ADA, EVE, openService, prepareAs, silently } from '../../testing/door-service.js'
import { DoorClient } from './door-client.js'
import { openDoorRecord } from './door-record.js'

const STEPS = { size: 2, blocks: [[1, 2, 30, 40]] as const, causes: { 'disk of rank 3': 30 } }
const TIME = { sinceAgoMs: 1000, gpus: 2, gpuMs: 2000, waits: { disk: 300 }, steps: STEPS }

function eventOf(task: string, time: FedTime = TIME) {
  return { ...describeFedTime(time, 5000), node: 'elsewhere', dataset: 'flowers', copyId: null, task }
}

test('a user notes the time of a feed: on this node, by the clock of the service', async (context) => {
  const { as, client, cache } = await openService(context)
  as(ADA)
  await openDoorRecord(client, 0).addEvent(eventOf('mine'))
  const [event] = await cache.record.listEvents({ kinds: ['fed'], limit: 9 })
  const { sequence: _, ...noted } = event!
  const { atMs } = noted
  assert.deepEqual(noted, { ...eventOf('mine'), ...describeFedTime(TIME, atMs), node: cache.node })
  assert.notEqual(atMs, 5000)
})

test('a user notes nothing for the task of another user, and nothing but the time of feeds', async (context) => {
  const { as, client, cache, flowers } = await openService(context)
  await as(ADA).api.prepare({ ...prepareAs('hers'), dataset: flowers }, silently)
  as(EVE)
  const record = openDoorRecord(client, 0)
  await assert.rejects(record.addEvent(eventOf('hers')), { code: 'NOT_PERMITTED' })
  await assert.rejects(record.addEvent({ ...eventOf('mine'), kind: 'evicted' }), { code: 'NOT_PERMITTED' })
  for (const wrong of [
    { gpuMs: 2001 },
    { gpus: 100_000 },
    { sinceAgoMs: -1 },
    { waits: { disk: Number.NaN } },
    { steps: { ...STEPS, blocks: Array.from({ length: 129 }, () => STEPS.blocks[0]) } },
  ])
    await assert.rejects(record.addEvent(eventOf('mine', { ...TIME, ...wrong })), /expected/)
  assert.deepEqual(await cache.record.listEvents({ kinds: ['fed'], limit: 9 }), [])
})

test('a time that is refused is named with its limit', async (context) => {
  const { as, path } = await openService(context)
  as(ADA)
  const asked = { dataset: 'flowers', task: 'mine', ...TIME, gpuMs: 2001 }
  await assert.rejects(new DoorClient(path, { onAway: () => {} }).ask('addFedTime', asked), {
    code: 'USAGE',
    message: 'gpuMs: expected 0 to 2000, found 2001',
  })
})
