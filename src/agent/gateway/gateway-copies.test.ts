import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cache } from '../../cache/cache.js'
import { DATA, openGatewayNode, originOf } from '../../testing/gateway-node.js'
import { waitFor } from '../../testing/world.js'
import { GatewayCopies } from './gateway-copies.js'

test('a copy of what a dataset was declared as before is not read as what it is now', async (t) => {
  const before = originOf({ a: 'old' }, { ...DATA, source: 's3://bucket/old/' })
  const now = originOf({ a: 'new' })
  const { prepare, open } = await openGatewayNode(t, [before, now])
  await prepare(before.dataset)
  const { read } = await open([DATA])
  assert.equal((await read('/data/a')).text, 'new')
})

test('a bucket of more datasets than manifests stay open is listed', async (t) => {
  const origins = Array.from({ length: 70 }, (_, i) => {
    const name = `d${String(i).padStart(2, '0')}`
    return originOf({ a: name }, { name, source: `s3://bucket/${name}/`, include: [], exclude: [] })
  })
  const { prepare, open } = await openGatewayNode(t, origins)
  for (const { dataset } of origins) await prepare(dataset)
  const { list, read } = await open(origins.map(({ dataset }) => dataset))
  assert.deepEqual(
    await list(''),
    origins.map(({ dataset }) => `${dataset.name}/a`),
  )
  assert.equal((await read('/d69/a')).text, 'd69')
})

test('while a source that changed is listed once more, none of its keys are missing', async (t) => {
  const origin = originOf({ a: 'alpha', b: 'beta' })
  const { source } = origin
  const letGo = source.hold('b')
  const { read, list } = await (await openGatewayNode(t, [origin])).open([DATA])
  assert.equal((await read('/data/a')).text, 'alpha')
  const waiting = read('/data/b')
  await waitFor('the object to be asked for', () => source.fetches('b') > 0)
  source.objects.set('b', Buffer.from('changed'))
  const letListingGo = source.holdListing()
  letGo()
  await waitFor('the source to be listed again', () => source.listings() > 1)
  const listed = list('')
  await sleep(200)
  letListingGo()
  assert.deepEqual(await listed, ['data/a', 'data/b'])
  assert.notEqual((await waiting).status, 404)
  assert.equal((await read('/data/b')).text, 'changed')
})

test('what took long and was then moved is looked for where it is now', async (t) => {
  const clock = { ms: 0 }
  t.mock.method(performance, 'now', () => clock.ms)
  const copies = new GatewayCopies({
    ...{ cache: {} as Cache, counts: { failed: () => {} }, keepMs: 60_000, ranges: 'proven' },
    ...{ signal: t.signal, note: () => {} },
  })
  t.after(() => copies.close())
  const answers = [undefined, 'found']
  const found = await copies.untilFound([], async () => {
    clock.ms += 60_000
    return answers.shift()
  })
  assert.equal(found, 'found')
})

test('a copy that lies where the root was called otherwise is passed through', async (t) => {
  const origin = originOf({ a: 'alpha' })
  const { directory, root, prepare, open } = await openGatewayNode(t, [origin])
  const link = join(directory, 'link')
  symlinkSync(root, link)
  await prepare(DATA, link)
  const { read } = await open([DATA])
  assert.equal((await read('/data/a')).text, 'alpha')
})

test('who waits for an object is not told that it is not there because another has gone', async (t) => {
  const origin = originOf({ a: 'alpha', b: 'beta' })
  const { source } = origin
  const letGo = source.hold('b')
  source.hold('a')
  const { read } = await (await openGatewayNode(t, [origin])).open([DATA])
  const waiting = read('/data/a')
  await waitFor('the other object to be asked for', () => source.fetches('b') > 0)
  source.objects.delete('b')
  letGo()
  const { status, text, headers } = await waiting
  assert.equal(status, 503, text)
  assert.ok(Number(headers.get('retry-after')) > 0)
})
