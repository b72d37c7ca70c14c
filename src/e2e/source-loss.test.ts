import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { startFaultyStore } from '../testing/faulty-store.js'
import { makeWorld, s3Dataset, waitFor } from '../testing/world.js'

const FILES = 60
const { server, proxy, bucket, close } = await startFaultyStore()

before(async () => {
  for (let index = 0; index < FILES; index += 1)
    await server.putObject(bucket, `d/k${String(index).padStart(2, '0')}`, `body ${index}`)
})
after(close)

for (const { status, code } of [
  { status: 404, code: 'NoSuchKey' },
  { status: 403, code: 'AccessDenied' },
  { status: 412, code: 'PreconditionFailed' },
]) {
  test(`an object that answers ${code} in mid-download costs none of those that were fetched`, async (context) => {
    const datasets = { flowers: s3Dataset(bucket, 'd/', proxy.endpoint) }
    const world = await makeWorld(context, { server, datasets, stage: { concurrency: 8 } })
    proxy.setRules([{ match: `GET .*/d/k${FILES - 1}`, times: 1, fault: { kind: 'status', status, code } }])
    proxy.forget()
    const failed = await world.dsc('prepare', 'flowers', '--task', 'first')
    assert.notEqual(failed.code, 0)
    assert.match(failed.stderr, new RegExp(code))
    if (status !== 403) assert.match(failed.stderr, /dsc prepare flowers --refresh/)
    const fetchedBefore = proxy.count(/GET .*\/d\/k/)
    assert.ok(fetchedBefore > FILES / 2, `only ${fetchedBefore} were asked for`)
    proxy.forget()
    await succeeds(world.dsc('prepare', 'flowers', '--task', 'second'))
    // Those that were under way when the failure came are asked for again.
    const again = proxy.count(/GET .*\/d\/k/)
    assert.ok(again <= FILES / 2, `${again} of ${FILES} came twice`)
  })
}

test('a root that is removed while a copy is staged is said so, without a stack trace', async (context) => {
  const datasets = { flowers: s3Dataset(bucket, 'd/', proxy.endpoint) }
  const world = await makeWorld(context, { server, datasets })
  const removed = Promise.withResolvers<void>()
  proxy.onRequest((line) => (/GET .*\/d\/k1/.test(line) ? removed.promise : undefined))
  const running = world.start(['prepare', 'flowers', '--task', 't'])
  await waitFor('the download', () => proxy.count(/GET .*\/d\/k1/) > 0)
  rmSync(world.root, { recursive: true, force: true })
  removed.resolve()
  const { code, stderr } = await running.finished
  assert.notEqual(code, 0)
  assert.doesNotMatch(stderr, /^ +at |internal error/m)
  assert.match(stderr, /was removed while it was being filled|is gone|record/)
})

test('a range that the server has and refuses once is asked for again', async (context) => {
  const datasets = { flowers: s3Dataset(bucket, 'd/', proxy.endpoint) }
  const world = await makeWorld(context, { server, datasets, retryFor: '2m' })
  const fault = { kind: 'status', status: 416, code: 'InvalidRange' } as const
  proxy.setRules([{ match: 'GET .*/d/k07', times: 2, fault }])
  await succeeds(world.dsc('prepare', 'flowers', '--task', 'a'))
  proxy.setRules([{ match: 'GET .*/d/k07', fault }])
  proxy.forget()
  const other = await makeWorld(context, { server, datasets, retryFor: '2m' })
  const failed = await other.dsc('prepare', 'flowers', '--task', 'a')
  assert.match(failed.stderr, /the object changed while it was read.*416 InvalidRange/)
  assert.equal(proxy.count(/GET .*\/d\/k07/), 3)
})
