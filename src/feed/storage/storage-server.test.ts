import assert from 'node:assert/strict'
import { once } from 'node:events'
import { openSync, readSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { indexSamples } from '../../samples/index-samples.js'
import { makeTestFolder, sampleBytes, writeSamples } from '../../testing/sample-folder.js'
import type { SampleFetch } from './pending-fetches.js'
import { proveToken } from './prove-token.js'
import { StorageClient } from './storage-client.js'
import { StorageServer } from './storage-server.js'
import { formatGetBatch, formatStorageFrame, readStorageFrames, STORAGE_MESSAGE } from './storage-wire.js'

const COUNT = 64
const BYTES = 2 ** 20
const ALL = Uint32Array.from({ length: COUNT }, (_, i) => i)

/** Serves 64 MiB of samples from a storage node, with a client and the file it writes samples to. */
async function serve(context: TestContext, extra: object = {}) {
  const directory = makeTestFolder(context)
  writeSamples(join(directory, 'samples'), COUNT, () => BYTES)
  const folder = await indexSamples(join(directory, 'samples'), { cacheFolder: join(directory, 'cache') })
  const server = await StorageServer.open({ folder, host: '127.0.0.1', port: 0, ...extra })
  context.after(() => server.close())
  const arenaFd = openSync(join(directory, 'arena'), 'w+')
  const client = await StorageClient.connect({
    address: server,
    token: undefined,
    table: folder.table,
    arenaFd,
  })
  context.after(() => client.close())
  const request = (samples: Uint32Array, onSample: SampleFetch['onSample'] = () => {}): SampleFetch => ({
    samples,
    offsets: Float64Array.from(samples, (sample) => sample * BYTES),
    maxBytes: 0xffffffff,
    deadlineMs: 20_000,
    onSample,
  })
  const readArena = (sample: number): Buffer => {
    const bytes = Buffer.alloc(BYTES)
    readSync(arenaFd, bytes, 0, BYTES, sample * BYTES)
    return bytes
  }
  return { server, client, request, readArena }
}

/** Asks for everything but reads none of the answer. */
async function askAndTakeNothing(context: TestContext, server: StorageServer): Promise<Socket> {
  const socket = connect(server.port, server.host)
  context.after(() => socket.destroy())
  const welcome = new Promise<void>((resolve) => {
    const frames = readStorageFrames('the server', {
      onItems: () => {},
      onControl({ type, challenge }) {
        if (type === STORAGE_MESSAGE.welcome) return resolve()
        if (type !== STORAGE_MESSAGE.challenge) return
        const { mac } = proveToken('', String(challenge))
        socket.write(formatStorageFrame({ type: STORAGE_MESSAGE.hello, request: 0, mac }))
      },
    })
    socket.on('data', (chunk: Buffer) => frames.push(chunk))
  })
  await welcome
  socket.pause()
  socket.on('error', () => {})
  socket.write(formatGetBatch(7, ALL, 0xffffffff))
  return socket
}

async function until(claim: () => boolean): Promise<void> {
  while (!claim()) await sleep(5)
}

test('a request that is cancelled is neither read nor sent to its end, and the connection goes on', async (context) => {
  const { server, client, request, readArena } = await serve(context)
  const came: number[] = []
  let cancelledAt = 0
  const fetch = client.fetch(
    request(ALL, (index) => {
      came.push(index)
      if (came.length === 1) {
        cancelledAt = server.counts.bytes
        fetch.cancel()
      }
    }),
  )
  const left = await fetch.done
  assert.ok(left.includes(COUNT - 1))
  assert.deepEqual(await client.fetch(request(Uint32Array.of(3))).done, [])
  assert.ok(readArena(3).equals(sampleBytes(3, BYTES)))
  assert.ok(readArena(COUNT - 1).equals(Buffer.alloc(BYTES)), 'nothing is written behind the cancel')
  assert.equal(server.counts.cancelled, 1)
  assert.ok(server.counts.bytes < (COUNT * BYTES) / 2, `${server.counts.bytes} bytes were sent`)
  assert.ok(server.counts.unwantedBytes < 6 * BYTES, `${server.counts.unwantedBytes} bytes were read in vain`)
  assert.ok(cancelledAt > 0)
  await until(() => server.pendingBytes === 0)
})

test('what a client does not take is not read ahead, and it is cut off', async (context) => {
  const { server } = await serve(context, { idleTimeoutMs: 300 })
  await askAndTakeNothing(context, server)
  await until(() => server.pendingBytes > 0)
  await until(() => server.pendingBytes === 0)
  assert.ok(server.counts.bytes + server.counts.unwantedBytes < (COUNT * BYTES) / 2)
})

test('a request beyond what may be pending is put off until a client gives up another', async (context) => {
  const { server, client, request } = await serve(context, { maxPendingBytes: 4 * BYTES })
  const hog = await askAndTakeNothing(context, server)
  await until(() => server.pendingBytes > 0)
  const { done } = client.fetch(request(Uint32Array.of(5)))
  await until(() => server.counts.busy > 1)
  hog.write(formatStorageFrame({ type: STORAGE_MESSAGE.cancel, request: 7 }))
  assert.deepEqual(await done, [])
  assert.equal(server.counts.cancelled, 1)
})

test('a node that stays busy past the deadline fails the request, not the connection', async (context) => {
  const { server, client, request } = await serve(context, { maxPendingBytes: 4 * BYTES })
  const hog = await askAndTakeNothing(context, server)
  await until(() => server.pendingBytes > 0)
  await assert.rejects(client.fetch({ ...request(Uint32Array.of(5)), deadlineMs: 1000 }).done, {
    code: 'FEED_GONE',
    message: /busy/,
  })
  hog.destroy()
  assert.deepEqual(await client.fetch(request(Uint32Array.of(5))).done, [])
})

test('a node that ends says so to those who wait, also when another client takes nothing', async (context) => {
  const { server, client, request } = await serve(context)
  const hog = await askAndTakeNothing(context, server)
  await until(() => server.pendingBytes > 0)
  const { done } = client.fetch(request(ALL))
  const closed = server.close()
  await assert.rejects(done, { code: 'FEED_GONE', message: /shutting down/ })
  assert.equal(client.isOpen, false)
  hog.resume()
  await Promise.all([closed, once(hog, 'close')])
})
