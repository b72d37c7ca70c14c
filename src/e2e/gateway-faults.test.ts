import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync, writeSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startCountingStore } from '../testing/counting-store.js'
import { startGateway } from '../testing/gateway-world.js'
import { mountSmallDisk, whyNoSmallDisk } from '../testing/small-disk.js'
import { makeWorld, s3Dataset, type World, waitFor } from '../testing/world.js'

const BIG = randomBytes(8_000_000)
const OBJECTS = new Map([
  ['here/a', Buffer.from('alpha')],
  ['here/big', BIG],
  ['away/b', Buffer.from('beta')],
])

/** A gateway whose dataset `here` is ready and whose dataset `away` is not. */
async function makeGateway(t: TestContext) {
  const store = await startCountingStore(OBJECTS)
  t.after(() => store.close())
  const datasets = Object.fromEntries(
    ['here', 'away'].map((name) => [name, s3Dataset('bucket', `${name}/`, store.endpoint)]),
  )
  const world: World = await makeWorld(t, { agent: { listen: '127.0.0.1:0' }, datasets })
  const served = await startGateway(world)
  assert.equal((await served.read('/bucket/here/a')).body.toString(), 'alpha')
  await waitFor(
    'the copy to be ready',
    () => world.query(`SELECT 1 FROM copies WHERE state = 'ready'`).length === 1,
  )
  return { store, ...served }
}

test('while the origin is away, what is here is served and the rest is ServiceUnavailable for a while', async (t) => {
  const { store, read } = await makeGateway(t)
  await store.close()
  assert.ok((await read('/bucket/here/big')).body.equals(BIG))
  const { status, headers, body } = await read('/bucket/away/b')
  assert.equal(status, 503, body.toString())
  assert.ok(Number(headers['retry-after']) > 0)
  assert.match(body.toString(), /<Code>ServiceUnavailable<\/Code>/)
})

test('folder markers are listed and answered as the origin does, on their way and ready', async (t) => {
  const objects = new Map([
    ['data/', Buffer.alloc(0)],
    ['data/a', Buffer.from('alpha')],
    ['data/empty/', Buffer.alloc(0)],
    ['data/full/', Buffer.alloc(0)],
    ['data/full/b', Buffer.from('beta')],
  ])
  const store = await startCountingStore(objects)
  t.after(() => store.close())
  const datasets = { data: s3Dataset('bucket', 'data/', store.endpoint) }
  const world = await makeWorld(t, { agent: { listen: '127.0.0.1:0' }, datasets })
  const letGo = store.holdBack('data/full/b')
  const { read } = await startGateway(world)
  const list = async (query: string) => {
    const { body } = await read(`/bucket?list-type=2&${query}`)
    return [...body.toString().matchAll(/<(?:Key|Prefix)>([^<]*)</g)].map(([, key]) => key)
  }
  const check = async () => {
    assert.deepEqual(await list(''), ['', ...objects.keys()])
    assert.deepEqual(await list('prefix=data/&delimiter=/'), [
      'data/',
      ...['data/', 'data/a'],
      ...['data/empty/', 'data/full/'],
    ])
    assert.deepEqual(await list('prefix=data/full/&max-keys=1'), ['data/full/', 'data/full/'])
    assert.deepEqual(await list('prefix=data/full/&start-after=data/full/'), ['data/full/', 'data/full/b'])
    for (const key of ['data/', 'data/empty/']) {
      const { status, headers, body } = await read(`/bucket/${key}`)
      assert.deepEqual([status, body.length, headers['content-length']], [200, 0, '0'])
      assert.equal(headers.etag, '"d41d8cd98f00b204e9800998ecf8427e"')
    }
    assert.equal((await read('/bucket/data/none/')).status, 404)
  }
  await check()
  letGo()
  assert.equal((await read('/bucket/data/full/b')).body.toString(), 'beta')
  await waitFor(
    'the copy to be ready',
    () => world.query(`SELECT 1 FROM copies WHERE state = 'ready'`).length > 0,
  )
  await check()
  assert.equal((await world.dsc('verify', 'data')).code, 0)
})

test('keys that cannot be files are passed through', async (t) => {
  const objects = new Map([
    ['odd/a//b', Buffer.from('double')],
    ['odd/../c', Buffer.from('up')],
    ['odd/d', BIG],
  ])
  const store = await startCountingStore(objects)
  t.after(() => store.close())
  const world = await makeWorld(t, {
    agent: { listen: '127.0.0.1:0' },
    datasets: { odd: s3Dataset('bucket', 'odd/', store.endpoint) },
  })
  const { read } = await startGateway(world)
  const { body } = await read('/bucket?list-type=2')
  const keys = [...body.toString().matchAll(/<Key>([^<]*)</g)].map(([, key]) => key)
  assert.deepEqual(keys, ['odd/../c', 'odd/a//b', 'odd/d'])
  assert.equal((await read('/bucket/odd/a//b')).body.toString(), 'double')
  assert.ok((await read('/bucket/odd/d')).body.equals(BIG))
})

test('a bucket may stand in the host name', async (t) => {
  const { read } = await makeGateway(t)
  const hosted = await read('/here/a', { host: 'bucket.localhost:9300' })
  assert.equal(hosted.body.toString(), 'alpha')
  // Its key looks like a request to a Hugging Face hub.
  const none = await read('/here/resolve/main/a', { host: 'bucket.localhost:9300' })
  assert.match(none.body.toString(), /<Code>NoSuchKey<\/Code>/)
  const listed = await read('/?list-type=2&prefix=here/', { host: 'bucket.localhost' })
  assert.match(listed.body.toString(), /<Key>here\/a<\/Key>.*<Key>here\/big<\/Key>/s)
})

test('a disk that fills up while a dataset comes costs no client a byte', {
  skip: whyNoSmallDisk,
}, async (t) => {
  const objects = new Map(Array.from({ length: 40 }, (_, i) => [`many/${i}`, randomBytes(200_000)] as const))
  const store = await startCountingStore(objects)
  t.after(() => store.close())
  const root = await mountSmallDisk(t, 32 * 2 ** 20)
  const datasets = { many: s3Dataset('bucket', 'many/', store.endpoint) }
  const stage = { bandwidthLimit: '2MB/s', concurrency: 2 }
  const world = await makeWorld(t, { root, stage, agent: { listen: '127.0.0.1:0' }, datasets })
  const { read } = await startGateway(world)
  assert.equal((await read('/bucket/many/39')).status, 200)
  const filler = openSync(join(root, 'filler'), 'w')
  t.after(() => closeSync(filler))
  assert.throws(() => {
    for (;;) writeSync(filler, Buffer.alloc(65_536))
  }, /ENOSPC/)
  for (const [key, body] of objects) {
    const answer = await read(`/bucket/${key}`)
    assert.equal(answer.status, 200, `${key}: ${answer.body}`)
    assert.ok(answer.body.equals(body), key)
  }
})

test('clients that idle, take nothing, or ask for a thousand ranges cost no memory to speak of', async (t) => {
  const { read, memory, address } = await makeGateway(t)
  const sockets: Socket[] = []
  t.after(() => sockets.forEach((socket) => void socket.destroy()))
  const open = () => {
    const socket = connect(Number(address.port), address.hostname)
    socket.on('error', () => {})
    sockets.push(socket)
    return once(socket, 'connect')
  }
  const before = memory()
  for (let i = 0; i < 1000; i += 100) await Promise.all(Array.from({ length: 100 }, open))
  for (const socket of sockets.slice(0, 50))
    socket.pause().write('GET /bucket/here/big HTTP/1.1\r\nhost: x\r\n\r\n')
  const ranges = Array.from({ length: 1000 }, (_, i) => (i * 7919) % (BIG.length - 100))
  for (let i = 0; i < ranges.length; i += 50)
    await Promise.all(
      ranges.slice(i, i + 50).map(async (at) => {
        const { status, body } = await read('/bucket/here/big', { range: `bytes=${at}-${at + 99}` })
        assert.equal(status, 206)
        assert.ok(body.equals(BIG.subarray(at, at + 100)), `bytes from ${at} on`)
      }),
    )
  // 50 clients that take nothing would hold 400 MB if whole answers waited for them.
  assert.ok(memory() - before < 200e6, `${memory() - before} bytes more`)
})
