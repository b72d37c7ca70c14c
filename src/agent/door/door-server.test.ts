import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { deriveDatasetName } from '../../model/dataset.js'
import { loadReadPeer, type Peer } from '../../platform/peer-credentials.js'
import type { LeaseFilter } from '../../records/contract/record-requests.js'
import { ADA, EVE, openService, prepareAs, signal, silently } from '../../testing/door-service.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { DoorClient } from './door-client.js'
import { takeReadyAtDoor } from './take-ready.js'

test('the kernel says who connects, with a library that npm installs prebuilt', async (context) => {
  const path = join(await temporaryDirectory(context), 'socket')
  const readPeer = loadReadPeer()
  assert.ok(!('obstacle' in readPeer), 'obstacle' in readPeer ? readPeer.obstacle : '')
  const { createServer } = await import('node:net')
  const peer = await new Promise((resolve) => {
    const server = createServer((socket) => {
      resolve(readPeer(socket))
      socket.destroy()
      assert.equal(readPeer(socket), undefined, 'a client that is gone is nobody')
      server.close()
    })
    server.listen(path, () => createConnection(path).on('error', () => {}))
  })
  const { pid, getuid, getgid } = process
  const groups = process.getgroups!()
  assert.deepEqual({ ...(peer as Peer), groups }, { pid, uid: getuid!(), gid: getgid!(), groups })
})

test('a dataset that the service declares is staged for anybody, and leased in their name', async (context) => {
  const { as, flowers, cache } = await openService(context)
  const steps = new Set<string>()
  const onProgress = ({ step }: { step: string }) => void steps.add(step)
  const prepared = await as(ADA).api.prepare(
    { ...prepareAs('job'), dataset: flowers },
    { signal, onProgress },
  )
  assert.equal(prepared.copy.dataset, 'flowers')
  assert.deepEqual(prepared.lease.parties, [`user:uid-${ADA}`])
  const [lease] = await cache.record.listLeases({ purpose: 'use' })
  assert.deepEqual(lease?.holder, { kind: 'ttl', userId: ADA })
  assert.equal(await as(EVE).record.releaseUses({ task: 'job' }, 0), 0)
  await assert.rejects(as(EVE).record.releaseUses({ leaseId: lease!.leaseId }, 0), { code: 'NOT_PERMITTED' })
  await assert.rejects(as(EVE).record.renewLease(lease!.leaseId, null, 0), { code: 'NOT_PERMITTED' })
  assert.equal(await as(ADA).record.renewLease(lease!.leaseId, Date.now() + 1e12, 0), true)
  const [renewed] = await cache.record.listLeases({ purpose: 'use' })
  assert.ok(renewed!.expiresAtMs! < Date.now() + 31 * 86_400_000, 'nobody holds a copy for ever')
  assert.equal(await as(ADA).record.releaseUses({ task: 'job' }, 0), 1)
})

test('who looks at the record hears of a change at once, and waits at the service until then', async (context) => {
  const { as, flowers } = await openService(context)
  const { record } = as(EVE)
  const beganMs = performance.now()
  const woken = record.waitForChange({ pollMs: 60_000, atMostMs: 60_000 })
  await as(ADA).api.prepare({ ...prepareAs('job'), dataset: flowers }, silently)
  await woken
  const wokenMs = performance.now()
  assert.ok(wokenMs - beganMs < 10_000)
  await record.waitForChange({ pollMs: 1, atMostMs: 500 })
  assert.ok(performance.now() - wokenMs >= 499, 'nothing changed')
})

test('who looks stops waiting when they are stopped, and never fails', async (context) => {
  const { as, door } = await openService(context)
  const closing = new AbortController()
  const waiting = as(EVE).record.waitForChange({ pollMs: 60_000, atMostMs: 60_000, signal: closing.signal })
  closing.abort()
  await waiting
  await door.stop(0)
  await as(EVE).record.waitForChange({ pollMs: 1, atMostMs: 60_000 })
})

test('two users of one task do not share a lease', async (context) => {
  const { as, flowers, cache } = await openService(context)
  for (const uid of [ADA, EVE])
    await as(uid).api.prepare({ ...prepareAs('same'), dataset: flowers }, silently)
  const leases = await cache.record.listLeases({ purpose: 'use' })
  assert.deepEqual(leases.map(({ holder }) => holder.userId).toSorted(), [ADA, EVE])
  await as(EVE).record.releaseUses({ task: 'same' }, 0)
  assert.deepEqual(
    (await cache.record.listLeases({ purpose: 'use' })).map(({ holder }) => holder.userId),
    [ADA],
  )
})

test('one lease is looked up by its id, however many the record has', async (context) => {
  const { as, flowers, cache, path } = await openService(context)
  const leaseIds: string[] = []
  for (const task of ['one', 'two'])
    leaseIds.push((await as(ADA).api.prepare({ ...prepareAs(task), dataset: flowers }, silently)).leaseId)
  const [leaseId = ''] = leaseIds
  const { listLeases } = cache.record
  const read: string[] = []
  Object.assign(cache.record, {
    listLeases: async (filter: LeaseFilter) => {
      const leases = await listLeases(filter)
      read.push(...leases.map((lease) => lease.leaseId))
      return leases
    },
  })
  const { record } = as(ADA)
  assert.equal((await record.listLeases({ leaseId })).length, 1)
  assert.equal(await record.renewLease(leaseId, Date.now() + 1e6, 0), true)
  await new DoorClient(path, { onAway: () => {} }).ask('handOverLease', { leaseId, pid: 1 })
  assert.equal(await record.releaseUses({ task: 'one' }, 0), 1)
  assert.deepEqual(new Set(read), new Set([leaseId]))
})

test('a process that is no ancestor of the asker holds nothing', async (context) => {
  const { as, flowers, cache } = await openService(context)
  const holder = {
    kind: 'process' as const,
    pid: 1,
    host: 'h',
    machine: 'm',
    startTicks: '1',
    bootId: 'b',
    pidNamespace: 'p',
  }
  const asked = { ...prepareAs('job'), lease: { task: 'job', holder, expiresAtMs: null }, dataset: flowers }
  await as(ADA).api.prepare(asked, silently)
  const [lease] = await cache.record.listLeases({ purpose: 'use' })
  assert.equal(lease?.holder.kind, 'ttl')
  assert.ok(lease.expiresAtMs! > Date.now(), 'it ends, but is not taken for dead')
})

test('a job that nobody can ask Slurm for ends, unless root names it', async (context) => {
  const { as, flowers, cache } = await openService(context)
  const lease = { task: 'slurm:1', holder: { kind: 'slurm' as const, jobId: '1' }, expiresAtMs: null }
  for (const uid of [ADA, 0])
    await as(uid).api.prepare({ ...prepareAs('job'), lease, dataset: flowers }, silently)
  const leases = await cache.record.listLeases({ purpose: 'use' })
  const endOf = (uid: number) => leases.find(({ holder }) => holder.userId === uid)?.expiresAtMs
  assert.ok(endOf(ADA)! > Date.now())
  assert.equal(endOf(0), null)
})

test('a client’s definition never says how a source is reached, nor takes another’s name', async (context) => {
  const { as, flowers, cache } = await openService(context)
  const stray = (changes: object) =>
    as(ADA).api.prepare({ ...prepareAs('job'), dataset: { ...flowers, ...changes } }, silently)
  for (const changes of [
    { source: 'file:///etc/' },
    { source: 'https://example.org/x' },
    { name: 'birds' },
    { name: '../../etc', source: 'hf://org/model' },
    { name: 'a\u001b[31m' },
    { source: 'nonsense' },
  ])
    await assert.rejects(stray(changes), (error) =>
      isDscError(error, 'DATASET_UNKNOWN', 'USAGE', 'NOT_PERMITTED'),
    )
  const prepared = await stray({ endpoint: 'http://127.0.0.1:1', profile: 'root' })
  assert.deepEqual(prepared.copy.source, flowers)
  assert.equal((await cache.record.listCopies({}, 0)).length, 1)
})

test('what one user stages of their own choice has a limit, which evicts nothing and is not others’', async (context) => {
  const { as, makeDataset, cache } = await openService(context)
  const stage = (uid: number, repository: string, bytes: number) => {
    const source = `hf://org/${repository}`
    const dataset = { ...makeDataset(deriveDatasetName(source), { 'a.bin': 'x'.repeat(bytes) }), source }
    return as(uid).api.prepare({ ...prepareAs(repository), dataset }, silently)
  }
  const first = await stage(ADA, 'one', 500_000)
  assert.equal(first.copy.source?.anonymous, true, 'without the credentials of the service')
  await assert.rejects(stage(ADA, 'two', 600_000), {
    code: 'QUOTA_EXCEEDED',
    message: /undeclared sources of this user/,
  })
  assert.deepEqual(
    (await cache.record.listCopies({}, 0)).map(({ copyId }) => copyId),
    [first.copy.copyId],
  )
  await stage(EVE, 'two', 600_000)
  await stage(ADA, 'three', 100_000)
  await stage(0, 'four', 2_000_000)
  assert.equal((await cache.record.listCopies({}, 0)).length, 4)
})

test('a ready copy is leased in one turn, and all else is left to the whole program', async (context) => {
  const { as, flowers, path, cache } = await openService(context)
  const { lease } = prepareAs('job')
  assert.equal(await takeReadyAtDoor(path, { name: 'flowers', lease }), undefined, 'nothing is staged for it')
  assert.deepEqual(await cache.record.listCopies({}, 0), [])
  const prepared = await as(ADA).api.prepare({ ...prepareAs('job'), dataset: flowers }, silently)
  const taken = await takeReadyAtDoor(path, { name: 'flowers', lease })
  assert.deepEqual(taken?.copy.path, prepared.copy.path)
  assert.deepEqual(taken?.lease.holder, { kind: 'ttl', userId: ADA })
  assert.equal((await cache.record.listLeases({ purpose: 'use' })).length, 1, 'the same lease')
  assert.equal(await takeReadyAtDoor(path, { name: 'birds', lease }), undefined)
  const unusable = { ...lease, expiresAtMs: null }
  assert.equal(await takeReadyAtDoor(path, { name: 'flowers', lease: unusable }), undefined)
})

test('methods of the record that are not named are not at the door', async (context) => {
  const { client } = await openService(context)
  for (const operation of [
    'addEvent',
    'joinOrReserve',
    'constructor',
    '__proto__',
    'toString',
    'expireLeases',
  ])
    await assert.rejects(client.ask(operation, {}), { code: 'SERVICE_UNREACHABLE', message: /answers 404/ })
})

for (const { name, bytes } of [
  { name: 'nothing and waits', bytes: '' },
  { name: 'half a head', bytes: 'POST /door/2/prepare HTTP/1.1\r\nhost: x\r\n' },
  { name: 'noise', bytes: '\u0000\u0001\u0002garbage\r\n\r\n' },
  { name: 'a head without end', bytes: `POST / HTTP/1.1\r\nx: ${'y'.repeat(100_000)}` },
  {
    name: 'a body that is too long',
    bytes: `POST /door/2/prepare HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n`,
  },
  { name: 'no JSON', bytes: 'POST /door/2/prepare HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n{{{' },
  { name: 'a list', bytes: 'POST /door/2/evict HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n[]' },
  {
    name: 'nested brackets',
    bytes: `POST /door/2/evict HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n${'['.repeat(100_000)}`,
  },
  { name: 'another method', bytes: 'DELETE /door/2/evict HTTP/1.1\r\nhost: x\r\n\r\n' },
  {
    name: 'an upgrade',
    bytes: 'GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
  },
])
  test(`a client that sends ${name} changes nothing and stops nobody`, async (context) => {
    const { path, as, flowers, cache } = await openService(context)
    const socket = createConnection(path)
    socket.on('error', () => {})
    await new Promise((resolve) => socket.once('connect', resolve))
    socket.write(bytes)
    const prepared = await as(ADA).api.prepare({ ...prepareAs('job'), dataset: flowers }, silently)
    assert.equal(existsSync(join(prepared.copy.path, 'a.txt')), true)
    assert.equal((await cache.record.listCopies({}, 0)).length, 1)
    socket.destroy()
  })

for (const [operation, input] of [
  ['listCopies', { limit: 'all' }],
  ['listCopies', { states: 'ready' }],
  ['listCopies', { after: 'x' }],
  ['listLeases', { copyId: { $ne: 1 } }],
  ['listEvents', { before: 1.5 }],
  ['findDataset', {}],
  ['findDataset', { name: 'x'.repeat(5000) }],
  ['prepare', {}],
  ['prepare', { lease: { task: 'a\nb', holder: { kind: 'ttl' }, expiresAtMs: 1 } }],
  ['planEviction', { selection: { kind: 'everything' } }],
] as const)
  test(`${operation} of ${JSON.stringify(input).slice(0, 60)} is refused as unusable`, async (context) => {
    const { client } = await openService(context)
    await assert.rejects(client.ask(operation, input), { code: 'USAGE' })
  })

test('a user with too many connections is let in no more, and others are', async (context) => {
  const { path, as } = await openService(context)
  as(EVE)
  const sockets = Array.from({ length: 70 }, () => createConnection(path).on('error', () => {}))
  context.after(() => sockets.forEach((socket) => void socket.destroy()))
  const closed = await Promise.all(
    sockets.slice(64).map((socket) => new Promise((resolve) => socket.once('close', () => resolve(true)))),
  )
  assert.equal(closed.length, 6)
  assert.deepEqual(await as(ADA).record.listNodes(), [])
})

test('a page has an end, and those that follow are asked for', async (context) => {
  const { as, cache, client } = await openService(context)
  for (let index = 0; index < 501; index++)
    await cache.record.addEvent({
      atMs: 1,
      kind: 'refused',
      node: 'n',
      dataset: 'd',
      copyId: null,
      task: null,
      reason: 'r',
      detail: {},
    })
  assert.equal((await client.ask<readonly unknown[]>('listEvents', { limit: 1e6 })).length, 500)
  assert.equal((await as(ADA).record.listEvents({ limit: 1e6 })).length, 501)
})
