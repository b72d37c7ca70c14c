import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Dataset, deriveDatasetName } from '../../model/dataset.js'
import type { HandedAccess } from '../../sources/own-access.js'
import { ADA, openService, prepareAs, silently } from '../../testing/door-service.js'
import { createDoorApi } from './door-api.js'
import { DoorClient } from './door-client.js'
import { openDoorRecord } from './door-record.js'
import { placeOfJobs } from './door-socket.js'

const GUARDED: Dataset = {
  ...{ name: 'guarded', source: 's3://bucket/guarded/', include: [], exclude: [] },
  readers: [`user:uid-${ADA}`, 'user:root'],
}
const S3: HandedAccess = {
  ...{ scheme: 's3', isPathStyle: true, keys: { accessKeyId: 'AKIA', secretAccessKey: 'secret' } },
}

async function openJobs(context: Parameters<typeof openService>[0]) {
  const service = await openService(context, { declared: [GUARDED] })
  service.makeDataset('guarded')
  await service.reopen(true)
  const client = new DoorClient(placeOfJobs(service.path), { onAway: () => {}, patienceMs: 300 })
  const inJob = (uid: number) => {
    service.as(uid)
    return {
      api: createDoorApi(client, { uid, findOwnAccess: async () => S3 }),
      record: openDoorRecord(client, 0),
      client,
    }
  }
  return { ...service, inJob }
}

for (const uid of [0, ADA]) {
  test(`a container's process of uid ${uid} prepares, looks, and releases what it has`, async (context) => {
    const { inJob, flowers } = await openJobs(context)
    const { api, record } = inJob(uid)
    const { copy, leaseId } = await api.prepare({ ...prepareAs('job'), dataset: flowers }, silently)
    assert.equal((await record.listCopies({}, 0))[0]?.copyId, copy.copyId)
    assert.equal(await record.renewLease(leaseId, Date.now() + 1000, 0), true)
    assert.equal(await record.releaseUses({ leaseId }, 0), 1)
  })

  test(`a container's process of uid ${uid} has no rights of an admin, nor those of its uid outside`, async (context) => {
    const { as, inJob, flowers, prepare, cache } = await openJobs(context)
    await prepare(GUARDED)
    const held = await as(uid).api.prepare({ ...prepareAs('outside'), dataset: flowers }, silently)
    const { api, record, client } = inJob(uid)
    const asked = prepareAs('job')
    const url = (source: string) => ({
      ...asked,
      dataset: { ...flowers, source, name: deriveDatasetName(source) },
    })
    for (const [what, deed] of Object.entries({
      lock: () => record.setLock({ dataset: 'flowers' }, { by: 'x', reason: 'y', atMs: 0 }, 0),
      unlock: () => record.setLock({ dataset: 'flowers' }, null, 0),
      evict: () => api.evict({ kind: 'datasets', names: ['flowers'] }, {}),
      'plan its own eviction': () => api.planEviction({ kind: 'free', bytes: 1 }, { isOwn: true }),
      declare: () => record.saveDataset({ ...flowers, name: 'mine', source: 'hf://org/x' }, 0),
      'remove a dataset': () => record.removeDataset('flowers'),
      'end a lease': () => record.releaseUses({ leaseId: held.leaseId }, 0),
      'renew a lease': () => record.renewLease(held.leaseId, null, 0),
      'hand over a lease': () => record.handOverLease(held.leaseId, { kind: 'ttl' }, 0),
      'read a file': () => api.prepare(url('file:///etc/'), silently),
      'read a bucket, or hand over keys': () => api.prepare(url('s3://bucket/x/'), silently),
      'read what has readers': () => api.prepare({ ...asked, dataset: GUARDED }, silently),
      'plan what has readers': () =>
        api.planPrepare({ ...asked, dataset: GUARDED, isPrefetch: false, parties: ['user:root'] }, silently),
      'look at what has readers': () => record.listCopies({ dataset: 'guarded' }, 0),
    }))
      await assert.rejects(deed(), { code: 'NOT_PERMITTED' }, what)
    assert.equal((await client.greet()).uid, undefined)
    assert.deepEqual(
      (await record.listCopies({}, 0)).map(({ dataset }) => dataset),
      ['flowers'],
    )
    assert.equal((await cache.record.listLeases({ leaseId: held.leaseId })).length, 1)
    const { leaseId } = await api.prepare({ ...asked, dataset: flowers }, silently)
    await assert.rejects(as(ADA + 7).record.releaseUses({ leaseId }, 0), { code: 'NOT_PERMITTED' })
  })
}
