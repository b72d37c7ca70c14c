import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { leasesAnswer } from '../cache/leases/lease-answer.js'
import { shuffleSamples } from '../feed/plan/order.js'
import { formatSessionFrame, MESSAGE } from '../feed/session/wire.js'
import { type CountingStore, startCountingStore } from '../testing/counting-store.js'
import { succeeds } from '../testing/dsc-processes.js'
import { openTestFeedClient } from '../testing/feed-client.js'
import { STORE_KEYS } from '../testing/gateway-world.js'
import { type NodeService, startNodeService } from '../testing/node-service.js'
import { sampleBytes } from '../testing/sample-folder.js'
import { ADA, findObstacle } from '../testing/several-users.js'
import { s3Dataset, waitFor } from '../testing/world.js'

const ROOT = { uid: 0, gid: 0 }
const COUNT = 60
const BATCH = 10
const LENGTH = 3000
const SEED = 5
const nameOf = (id: number) => `${String(id).padStart(4, '0')}.bin`
const OBJECTS = new Map(
  Array.from({ length: COUNT }, (_, id) => [`grains/${nameOf(id)}`, Buffer.from(sampleBytes(id, LENGTH))]),
)
Object.assign(process.env, STORE_KEYS)

async function startService(t: TestContext): Promise<{ service: NodeService; store: CountingStore }> {
  const store = await startCountingStore(OBJECTS)
  t.after(() => store.close())
  const datasets = { grains: s3Dataset('bucket', 'grains/', store.endpoint) }
  return { service: await startNodeService(t, { datasets }), store }
}

/** A feed of Ada, who has no rights on the record or the cache's root. */
async function serveAsAda(t: TestContext, service: NodeService) {
  const folder = mkdtempSync(join(tmpdir(), 'dsc-feed-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  chownSync(folder, ADA.uid, ADA.gid)
  const socket = join(folder, 'feed.sock')
  const feed = service.startAs(ADA, 'feed', 'serve', 'grains', '--socket', socket, '--seed', `${SEED}`)
  const client = await waitFor('the feed', async () => {
    if (feed.process.exitCode !== null) assert.fail((await feed.finished).stderr)
    if (!existsSync(socket)) return undefined
    return openTestFeedClient(socket, { batch: BATCH }).catch((error: Error) => {
      if (!error.message.endsWith('hung up')) throw error
      return undefined // it has its socket, and does not listen yet
    })
  })
  t.after(() => client.close())
  return { feed, client, socket }
}

/** Reads a pass byte by byte; calls `atStep` after each batch. */
async function readPass(
  { client }: Awaited<ReturnType<typeof serveAsAda>>,
  atStep: (step: number) => unknown,
): Promise<number> {
  let samples = 0
  for await (const { ids, data } of client.read({ epoch: 0, step: 0 })) {
    for (const [at, id] of ids.entries())
      assert.ok(data[at]!.equals(Buffer.from(sampleBytes(id, LENGTH))), `bytes of sample ${id}`)
    samples += ids.length
    await atStep(samples / BATCH)
  }
  return samples
}

/** The pids that use a copy: the service itself holds another lease until it has published one. */
async function listUsers(service: NodeService) {
  const { leases } = leasesAnswer.parse(JSON.parse((await service.as(ADA, 'leases', '--json')).stdout))
  return leases.flatMap(({ purpose, holder }) =>
    purpose === 'use' && holder.kind === 'process' ? [holder.pid] : [],
  )
}

test('a user feeds a ready copy of the service, which may be killed; the lease ends with the feed', {
  skip: findObstacle(),
}, async (t) => {
  const { service } = await startService(t)
  assert.equal((await service.as(ADA, 'prepare', 'grains', '--task', 'before')).code, 0)
  assert.equal((await service.as(ADA, 'release', 'grains', '--task', 'before')).code, 0)
  const served = await serveAsAda(t, service)
  assert.deepEqual(await listUsers(service), [served.feed.process.pid])
  const read = await readPass(served, (step) => step === 2 && service.stop('SIGKILL'))
  assert.equal(read, COUNT)
  await service.start()
  assert.notEqual((await service.as(ROOT, 'evict', 'grains', '--yes')).code, 0)
  served.feed.process.kill('SIGKILL')
  await served.feed.finished
  await succeeds(service.as(ROOT, 'evict', 'grains', '--yes'))
})

test('a user feeds a copy while the service stages it, and when it was killed in between', {
  skip: findObstacle(),
}, async (t) => {
  const { service, store } = await startService(t)
  const order = [...shuffleSamples({ sampleCount: COUNT, seed: SEED, epoch: 0 })]
  const held = order.slice(COUNT / 2).map((id) => store.holdBack(`grains/${nameOf(id)}`))
  const served = await serveAsAda(t, service)
  const read = await readPass(served, async (step) => {
    if (step !== 2) return
    const { transfers } = JSON.parse((await service.as(ADA, 'status', '--json')).stdout)
    assert.match(transfers[0].readers[0]?.name, /^the feed of process \d+$/)
    await service.stop('SIGKILL')
    await service.start()
    for (const letGo of held) letGo()
  })
  assert.equal(read, COUNT)
  assert.deepEqual(await listUsers(service), [served.feed.process.pid])
})

test('a feed notes through the door how long its trainer waited', { skip: findObstacle() }, async (t) => {
  const { service } = await startService(t)
  const { feed, socket } = await serveAsAda(t, service)
  const trainer = connect(socket)
  // An hour, so that it began before its feed asked for the dataset: it did not wait for that before it trained.
  const [elapsedMs, transformMs] = [3_600_000, 900_000]
  const time = { rank: 0, gpus: 2, elapsedMs, feedMs: 0, transformMs, startMs: 0, loaderMs: 0 }
  trainer.write(formatSessionFrame(MESSAGE.waits, time))
  trainer.write(formatSessionFrame(MESSAGE.status))
  await once(trainer, 'data')
  trainer.destroy()
  feed.process.kill('SIGTERM')
  await feed.finished
  const { jobs } = JSON.parse((await service.as(ADA, 'report', '--job', '--json')).stdout)
  assert.equal(jobs.length, 1)
  assert.deepEqual(jobs[0].waits, [{ place: 'transform', culprit: 'transform', gpuMs: 2 * transformMs }])
  assert.equal(jobs[0].gpuMs, 2 * elapsedMs)
  const said = await service.as(ADA, 'report', '--job')
  assert.match(said.stdout, /: 25% of 2\.0 GPU-hours waited: 25 in your own transform\n$/)
})
