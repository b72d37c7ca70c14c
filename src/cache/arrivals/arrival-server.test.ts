import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { ArrivalClient } from './arrival-client.js'
import { ArrivalServer } from './arrival-server.js'
import { SOCKET_NAME } from './arrival-wire.js'
import { ArrivingReader } from './arriving-reader.js'
import { BlockSet } from './block-set.js'
import { DueWaits } from './due-waits.js'
import type { Need } from './order-of-need.js'
import { OrderOfNeed } from './order-of-need.js'

/** Some readers of lines see two lines, or three, in the last one. */
const KEYS = ['a', 'b', 'c', 'odd \n\u2028 "key"']

async function openServer(t: TestContext, inFolder?: string) {
  const folder = inFolder ?? (await temporaryDirectory(t))
  const wanted: Need[] = []
  /** Blocks that the file of `b` holds. */
  const written = new BlockSet(100_000, 4096)
  const server = await ArrivalServer.open({
    copyDirectory: folder,
    need: new OrderOfNeed(KEYS.length, [1]),
    idOf: (key) => (KEYS.includes(key) ? KEYS.indexOf(key) + 1 : undefined),
    isWritten: (id, range) => id === 2 && written.has(range),
    onWant: (need) => wanted.push(need),
  })
  t.after(() => server.close())
  return { server, folder, wanted, written }
}

async function openClient(t: TestContext, folder: string): Promise<ArrivalClient> {
  const client = await ArrivalClient.open(folder)
  assert.ok(client)
  t.after(() => client.close())
  return client
}

test('a reader hears of what is there at once, of the rest when it arrives', async (t) => {
  const { server, folder, wanted } = await openServer(t)
  const client = await openClient(t, folder)
  assert.equal(await client.want('a'), 'there')
  assert.equal(await client.want('nothing'), 'unknown')
  const waits = [client.want(KEYS[3]!), client.want(KEYS[3]!)]
  assert.equal(await client.want('a'), 'there') // messages keep their order: the others are known by now
  assert.deepEqual(wanted, [4])
  assert.equal(server.need.takeWanted(), 4)
  server.arrived(4)
  assert.deepEqual(await Promise.all(waits), ['there', 'there'])
})

test('what is waited for without haste is not fetched before the rest, until somebody is in haste', async (t) => {
  const { server, folder } = await openServer(t)
  const client = await openClient(t, folder)
  const patient = client.want('c', { urgency: 'listed' })
  assert.equal(await client.want('a'), 'there')
  assert.equal(server.need.takeWanted(), undefined)
  const hasty = client.want('c')
  assert.equal(await client.want('a'), 'there')
  assert.equal(server.need.takeWanted(), 3)
  server.arrived(3)
  assert.deepEqual(await Promise.all([patient, hasty]), ['there', 'there'])
})

test('what a reader waits for far ahead is ordered, and wanted once it is due', async (t) => {
  const { server, folder } = await openServer(t)
  const reader = new ArrivingReader('the feed')
  t.after(() => reader.close())
  const copy = { directory: folder }
  const { signal } = t
  const waits = new DueWaits()
  const [oldest, ...others] = Array.from({ length: 65 }, () => waits.begin())
  const wait = reader.awaitAsked(copy, 'c', { signal, turn: others.at(-1)! })
  assert.equal(await reader.awaitAsked(copy, 'a', { signal }), 'there')
  assert.equal(server.need.takeWanted(), undefined)
  assert.equal(server.need.hasOrders, true)
  oldest!.end()
  assert.equal(await reader.awaitAsked(copy, 'a', { signal }), 'there')
  assert.equal(server.need.takeWanted(), 3)
  server.arrived(3)
  assert.equal(await wait, 'there')
})

test('a status says who reads, and who waits for what', async (t) => {
  const { folder } = await openServer(t)
  const asks = await openClient(t, folder)
  const named = await ArrivalClient.open(folder, { name: 'the feed' })
  assert.ok(named)
  t.after(() => named.close())
  named.order(['b', 'c', 'a'])
  void named.want('c')
  assert.equal(await named.want('a'), 'there')
  assert.deepEqual(await asks.describe(), [{ name: 'the feed', ordered: 2, waits: 1, waitsFor: ['c'] }])
})

test('a range is there as soon as it is written, and readers hear when it was not what its source holds', async (t) => {
  const { server, folder, wanted, written } = await openServer(t)
  const spoilt: string[] = []
  const client = await ArrivalClient.open(folder, { name: '', onSpoilt: (key) => spoilt.push(key) })
  assert.ok(client)
  t.after(() => client.close())
  client.order([['c', 5, 10], 'b'])
  const first = client.want(['b', 9000, 100])
  assert.equal(await client.want(['a', 0, 1]), 'there')
  assert.equal(await client.want(['nothing', 0, 1]), 'unknown')
  assert.deepEqual(wanted, [{ id: 2, offset: 9000, length: 100 }])
  assert.deepEqual(server.need.takeWanted(), wanted[0])
  assert.deepEqual(server.need.takeOrdered(), { id: 3, offset: 5, length: 10 })
  written.add({ offset: 9000, length: 100 })
  server.wrote(2)
  assert.equal(await first, 'there')
  assert.equal(await client.want(['b', 8192, 4096]), 'there')
  const later = client.want(['b', 50_000, 1])
  server.spoilt('b')
  server.arrived(2)
  assert.equal(await later, 'there')
  assert.deepEqual(spoilt, ['b'])
})

test('an order of thousands of keys is taken whole', async (t) => {
  const { server, folder } = await openServer(t)
  const client = await openClient(t, folder)
  client.order([...Array.from({ length: 5000 }, (_, i) => `nothing ${i}`), 'c', 'b'])
  assert.equal(await client.want('a'), 'there')
  const { need } = server
  assert.deepEqual([need.takeOrdered(), need.takeOrdered(), need.takeOrdered()], [3, 2, undefined])
})

test('a reader that sends more in one message than a client does is cut off, and the others are served', async (t) => {
  const { folder } = await openServer(t)
  const client = await openClient(t, folder)
  const hostile = connect(join(folder, SOCKET_NAME))
  t.after(() => hostile.destroy())
  hostile.on('error', () => {})
  const closed = new Promise((resolve) => hostile.once('close', resolve))
  hostile.resume().write(`${JSON.stringify({ order: Array.from({ length: 501 }, (_, i) => `${i}`) })}\n`)
  await closed
  assert.equal(await client.want('a'), 'there')
})

test('a reader that waits for thousands of ranges and asks for the status at each turn stops nobody', async (t) => {
  const { folder } = await openServer(t)
  const client = await openClient(t, folder)
  const hostile = connect(join(folder, SOCKET_NAME))
  t.after(() => hostile.destroy())
  hostile.on('error', () => {}).resume()
  const wants = Array.from({ length: 30_000 }, (_, at) => `${JSON.stringify({ want: ['b', at, 1] })}\n`)
  await new Promise((resolve) => hostile.write(wants.join(''), resolve))
  await new Promise((resolve) => hostile.write('{"status":true}\n'.repeat(20_000), resolve))
  const startMs = performance.now()
  assert.equal(await client.want('a'), 'there')
  assert.ok(performance.now() - startMs < 30_000, `${performance.now() - startMs} ms`)
})

test('a reader that goes is forgotten, and a stager that goes ends all waits', async (t) => {
  const { server, folder } = await openServer(t)
  const [gone, stays] = [await openClient(t, folder), await openClient(t, folder)]
  gone.order(['b'])
  assert.equal(await gone.want('a'), 'there')
  assert.equal(server.need.readerCount, 1)
  gone.close()
  while (server.need.readerCount > 0) await new Promise((resolve) => setImmediate(resolve))
  const wait = stays.want('c')
  assert.equal(await stays.want('a'), 'there')
  server.close()
  assert.equal(await wait, 'gone')
  assert.equal(await stays.want('c'), 'gone')
  assert.equal(existsSync(join(folder, SOCKET_NAME)), false)
  assert.equal(await ArrivalClient.open(folder), undefined)
})

test('the stager that takes over hears of what readers have ordered', async (t) => {
  const { server, folder } = await openServer(t)
  const reader = new ArrivingReader('the feed')
  t.after(() => reader.close())
  const copy = { directory: folder }
  await reader.order(copy, ['c', 'b'])
  while (server.need.readerCount === 0) await sleep(1)
  server.close()
  const next = await openServer(t, folder)
  // The reader may not have noticed the end yet.
  for (; next.server.need.readerCount === 0; await sleep(10)) await reader.order(copy, ['a'])
  assert.deepEqual([next.server.need.takeOrdered(), next.server.need.takeOrdered()], [3, 2])
})

test('the socket of a killed stager is replaced, in folders however deep', async (t) => {
  const folder = join(await temporaryDirectory(t), 'x'.repeat(200))
  mkdirSync(folder)
  writeFileSync(join(folder, SOCKET_NAME), 'left behind')
  await openServer(t, folder)
  assert.equal(await (await openClient(t, folder)).want('a'), 'there')
  assert.equal(await ArrivalClient.open(join(folder, 'missing')), undefined)
})

for (const [what, bytes] of [
  ['no JSON', 'hello\n'],
  ['no message', '{"order":"a"}\n'],
  ['no range', '{"want":["a",-1,5]}\n'],
  ['a line that never ends', 'x'.repeat(1024 * 1024 + 2)],
] as const)
  test(`${what} ends a connection and no other`, async (t) => {
    const { folder } = await openServer(t)
    const client = await openClient(t, folder)
    const stranger = connect(join(folder, SOCKET_NAME))
    stranger.on('error', () => {})
    const closed = new Promise((resolve) => stranger.once('close', resolve))
    stranger.resume().write(bytes)
    await closed
    assert.equal(await client.want('a'), 'there')
  })

test('a reader that reads nothing of what it is told is let go', async (t) => {
  const { folder } = await openServer(t)
  const client = await openClient(t, folder)
  const stranger = connect(join(folder, SOCKET_NAME))
  stranger.on('error', () => {})
  t.after(() => stranger.destroy())
  const closed = new Promise((resolve) => stranger.once('close', () => resolve('closed')))
  stranger.pause().write(`${JSON.stringify({ want: 'x'.repeat(10_000) })}\n`.repeat(3000))
  assert.equal(await Promise.race([closed, sleep(20_000, 'open', { ref: false })]), 'closed')
  assert.equal(await client.want('a'), 'there')
})
