import assert from 'node:assert/strict'
import { closeSync, openSync, readdirSync, readSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { indexSamples } from '../../samples/index-samples.js'
import { makeTestFolder, sampleBytes, writeSamples } from '../../testing/sample-folder.js'
import { openFeedEngine } from '../engine/open-feed-engine.js'
import { shuffleSamples } from '../plan/order.js'
import { folderSupply } from '../sources/folder-supply.js'
import { SessionServer } from './session-server.js'
import {
  formatBatch,
  formatSessionFrame,
  MESSAGE,
  parseBatch,
  readSessionFrames,
  type SessionFrame,
} from './wire.js'

const COUNT = 50

async function serve(context: TestContext, readDelayMs = 0) {
  const server = await open(context, readDelayMs)
  context.after(() => server.close())
  return server
}

/** A server that its test closes. */
async function open(context: TestContext, readDelayMs = 0) {
  const folder = makeTestFolder(context)
  writeSamples(join(folder, 'samples'), COUNT, () => 700)
  const listed = await indexSamples(join(folder, 'samples'), { cacheFolder: join(folder, 'cache') })
  const engine = openFeedEngine(folderSupply(listed), { seed: 2, memoryBytes: 2 ** 20, threads: 1 })
  const { source } = engine
  const read = source.read.bind(source)
  const readLater: typeof read = async (...request) => {
    await sleep(readDelayMs)
    return read(...request)
  }
  if (readDelayMs > 0) Object.assign(source, { read: readLater })
  context.after(() => engine.close())
  return SessionServer.open({ engine, socketPath: join(folder, 's') })
}

/** A client that keeps what it receives. */
function dial(context: TestContext, path: string) {
  const socket: Socket = connect(path)
  context.after(() => socket.destroy())
  const frames: SessionFrame[] = []
  const waiting: (() => void)[] = []
  const reader = readSessionFrames('the feed', (frame) => frames.push(frame))
  const wake = () => {
    for (const each of waiting.splice(0)) each()
  }
  socket.on('data', (chunk) => {
    reader.push(chunk)
    wake()
  })
  socket.on('error', () => {})
  const receive = async (): Promise<SessionFrame> => {
    while (frames.length === 0) await new Promise<void>((resolve) => waiting.push(resolve))
    return frames.shift()!
  }
  return {
    socket,
    receive,
    receiveFields: async () => (await receive()).fields,
    send: (type: number, fields: object) => socket.write(formatSessionFrame(type, fields)),
  }
}

const HELLO = { rank: 0, world: 1, batch: 10, pid: 1 }

test('a client gets an epoch by credits, reads it from the mapped arena and learns of the end', async (context) => {
  const server = await serve(context)
  const client = dial(context, server.socketPath)
  client.send(MESSAGE.hello, HELLO)
  const welcome = (await client.receiveFields()) as unknown as {
    arena: { path: string }
    stepsPerEpoch: number
  }
  assert.equal(welcome.stepsPerEpoch, 5)
  client.send(MESSAGE.start, { epoch: 1, step: 2, run: 'x' })
  assert.deepEqual(await client.receiveFields(), { epoch: 1, step: 2 })
  client.send(MESSAGE.next, { count: 4 })
  const arena = openSync(welcome.arena.path, 'r')
  const ids: number[] = []
  for (let step = 2; step < 5; step++) {
    const { type, payload } = await client.receive()
    assert.equal(type, MESSAGE.batch)
    assert.deepEqual(
      [payload.readUInt32LE(4), payload.readUInt32LE(8), payload.readUInt32LE(12)],
      [1, step, 10],
    )
    for (let i = 0; i < 10; i++) {
      const id = payload.readUInt32LE(16 + 120 + 4 * i)
      const bytes = Buffer.alloc(700)
      readSync(arena, bytes, 0, 700, Number(payload.readBigUInt64LE(16 + 8 * i)))
      assert.ok(bytes.equals(sampleBytes(id, 700)))
      ids.push(id)
    }
  }
  closeSync(arena)
  assert.deepEqual(ids, [...shuffleSamples({ sampleCount: COUNT, seed: 2, epoch: 1 })].slice(20))
  const end = await client.receive()
  assert.equal(end.type, MESSAGE.epochEnd)
})

test('a client of another seed or shape is told so before it gets anything', async (context) => {
  const server = await serve(context)
  const holder = dial(context, server.socketPath)
  holder.send(MESSAGE.hello, HELLO)
  await holder.receive()
  for (const [change, pattern] of [
    [{ seed: 3 }, /seed 2.*expects 3/],
    [{ batch: 5 }, /batches of 10/],
    [{ rank: 1 }, /rank 1 is not one of the 1/],
    [{ batch: -1 }, /batch must be a whole number/],
  ] as const) {
    const client = dial(context, server.socketPath)
    client.send(MESSAGE.hello, { ...HELLO, ...change })
    const { type, fields } = await client.receive()
    assert.equal(type, MESSAGE.error)
    assert.match(String(fields.message), pattern)
  }
})

test('what a client held is free again once it is gone, and another goes on', async (context) => {
  const server = await serve(context)
  for (let life = 0; life < 100; life++) {
    const client = dial(context, server.socketPath)
    client.send(MESSAGE.hello, HELLO)
    await client.receive()
    client.send(MESSAGE.start, { epoch: 0, step: life % 5, run: `life ${life}` })
    await client.receive()
    client.send(MESSAGE.next, { count: 3 })
    assert.equal((await client.receive()).type, MESSAGE.batch)
    client.socket.destroy()
  }
})

test('a client that starts over again and again, without waiting, ends where it asked last', async (context) => {
  const server = await serve(context, 10)
  const client = dial(context, server.socketPath)
  client.send(MESSAGE.hello, HELLO)
  await client.receive()
  for (let i = 0; i < 30; i++) {
    client.send(MESSAGE.start, { epoch: 7 * i, step: i % 5, run: `pass ${i}` })
    client.send(MESSAGE.next, { count: 3 })
  }
  client.send(MESSAGE.start, { epoch: 3, step: 1, run: 'last' })
  let started = 0
  while (started < 31) if ((await client.receive()).type === MESSAGE.started) started++
  client.send(MESSAGE.next, { count: 1 })
  const { payload } = await client.receive()
  assert.deepEqual([payload.readUInt32LE(4), payload.readUInt32LE(8)], [3, 1])
})

test('metrics come over the same socket to anything that speaks HTTP', async (context) => {
  const server = await serve(context)
  const socket = connect(server.socketPath)
  socket.write('GET /metrics HTTP/1.0\r\n\r\n')
  let text = ''
  for await (const chunk of socket) text += chunk
  assert.match(text, /^HTTP\/1\.0 200 OK\r\n/)
  assert.match(text, /\ndsc_feed_samples 50\n/)
})

test('two feeds cannot listen on one socket', async (context) => {
  const server = await serve(context)
  const folder = makeTestFolder(context)
  writeSamples(join(folder, 'samples'), 3, () => 10)
  const listed = await indexSamples(join(folder, 'samples'), { cacheFolder: join(folder, 'cache') })
  const engine = openFeedEngine(folderSupply(listed), { memoryBytes: 2 ** 20, threads: 1 })
  context.after(() => engine.close())
  await assert.rejects(SessionServer.open({ engine, socketPath: server.socketPath }), {
    code: 'FEED_PROTOCOL',
  })
})

test('what trainers have sent before the feed is closed counts, also from one that has left', async (context) => {
  const server = await open(context)
  const time = { gpus: 1, elapsedMs: 100, feedMs: 20, transformMs: 0, startMs: 0, loaderMs: 0 }
  const clients = [0, 1].map(() => dial(context, server.socketPath))
  for (const client of clients) {
    client.send(MESSAGE.hello, HELLO)
    await client.receive()
  }
  for (const [rank, client] of clients.entries()) client.send(MESSAGE.waits, { rank, ...time })
  clients[1]!.socket.destroy()
  await server.close()
  assert.equal(server.takeTime()?.gpuMs, 200)
})

test('times count at once, even behind a question whose answer takes a while', async (context) => {
  const server = await serve(context, 500)
  const client = dial(context, server.socketPath)
  client.send(MESSAGE.hello, HELLO)
  await client.receive()
  const told = { gpus: 1, elapsedMs: 70, feedMs: 10, transformMs: 0, startMs: 0, loaderMs: 0 }
  const question = formatSessionFrame(MESSAGE.get, {}, new Uint8Array(Uint32Array.of(3).buffer))
  client.socket.write(Buffer.concat([question, formatSessionFrame(MESSAGE.waits, { rank: 0, ...told })]))
  const times: (number | undefined)[] = []
  const answered = client.receive().then(() => times.push(server.takeTime()?.gpuMs))
  while (times.length === 0) {
    const gpuMs = server.takeTime()?.gpuMs
    if (gpuMs !== undefined) times.push(gpuMs)
    await new Promise(setImmediate)
  }
  await answered
  assert.deepEqual(times, [70, undefined])
})

test('an open arena has no name that a killed feed could leave behind', async (context) => {
  await serve(context)
  const own = readdirSync('/dev/shm').filter((name) => name.startsWith(`dsc-feed-${process.pid}-`))
  assert.deepEqual(own, [])
})

test('the bytes of a batch message are pinned: a change needs another version of SESSION_WIRE', () => {
  const message = {
    seq: 1,
    epoch: 2,
    step: 3,
    ids: [5, 6],
    offsets: [4096, 2 ** 33],
    lengths: [7, 8],
    flags: [0, 1],
    lost: [9],
  }
  assert.equal(
    formatBatch(message).toString('hex'),
    '445343530c000000360000000000090047bfa7f47b2274797065223a367d2020' +
      '010000000200000003000000020000000010000000000000000000000200000007000000080000000500000006000000000109000000',
  )
  assert.deepEqual(parseBatch(formatBatch(message).subarray(32)), message)
})
