import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeFedTime } from '../../model/fed-time.js'
import { ADA, EVE, openService, prepareAs, silently } from '../../testing/door-service.js'
import { openDoorRecord } from './door-record.js'

const TIME = { sinceAgoMs: 1000, gpus: 2, gpuMs: 2000, waits: { disk: 300 } }

function eventOf(task: string, time = TIME) {
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
  ])
    await assert.rejects(record.addEvent(eventOf('mine', { ...TIME, ...wrong })), /expected/)
  assert.deepEqual(await cache.record.listEvents({ kinds: ['fed'], limit: 9 }), [])
})

test('notes count among the changes that one user may make, so that nobody fills the record with them', async (context) => {
  const { as, client, cache } = await openService(context)
  as(ADA)
  const record = openDoorRecord(client, 0)
  const notes = Array.from({ length: 1000 }, () => record.addEvent(eventOf('mine')))
  const refused = (await Promise.allSettled(notes)).filter(({ status }) => status === 'rejected')
  const kept = await cache.record.listEvents({ kinds: ['fed'], limit: 1000 })
  assert.equal(kept.length, 1000 - refused.length)
  assert.notEqual(refused.length, 0)
  for (const { reason } of refused as PromiseRejectedResult[]) assert.equal(reason.code, 'TOO_MANY_REQUESTS')
})
