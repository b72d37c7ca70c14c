import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { indexSamples } from '../../samples/index-samples.js'
import { makeTestFolder, writeSamples } from '../../testing/sample-folder.js'
import { openFeedEngine } from '../engine/open-feed-engine.js'
import { folderSupply } from '../sources/folder-supply.js'
import { FeedConnection } from './feed-connection.js'
import { listenOnSocket } from './listen-on-socket.js'
import { SessionBatches } from './session-batches.js'
import { SessionServer } from './session-server.js'

const SHAPE = { batchSize: 10, rank: 0, world: 1, replicate: 1, last: 'drop', assign: 'fixed' } as const
const TIME = { gpus: 1, elapsedMs: 40, feedMs: 10, transformMs: 0, startMs: 0, loaderMs: 0 }

/** A feed of 50 samples, its server, and a client of it. */
async function serveAndRead(context: TestContext) {
  const folder = makeTestFolder(context)
  writeSamples(join(folder, 'samples'), 50, () => 700)
  const listed = await indexSamples(join(folder, 'samples'), { cacheFolder: join(folder, 'cache') })
  const engine = openFeedEngine(folderSupply(listed), { seed: 2, memoryBytes: 2 ** 20, threads: 1 })
  context.after(() => engine.close())
  const server = await SessionServer.open({ engine, socketPath: join(folder, 's') })
  context.after(() => server.close())
  const { socketPath } = server
  const reading = { timeoutMs: 5000, shape: SHAPE, onLoss: 'raise', seed: 2, order: undefined } as const
  return { engine, server, batches: await SessionBatches.open({ ...reading, socketPath, signal: undefined }) }
}

test('the times of a client that leaves while the feed writes to it arrive', async (context) => {
  const { engine, server, batches } = await serveAndRead(context)
  let closed: Promise<void> | undefined
  const takeNotes = engine.source.takeNotes.bind(engine.source)
  engine.source.takeNotes = () => {
    if (!closed) {
      batches.tell(TIME) // the feed has read the request for this batch, and nothing after it
      closed = batches.close()
    }
    return takeNotes()
  }
  await batches.start(0, 0)
  while (!closed) await new Promise(setImmediate)
  await closed
  const time = server.takeTime()
  assert.equal(time?.gpuMs, TIME.elapsedMs)
})

test('a feed that never hangs up does not keep a client that leaves', async (context) => {
  const socketPath = join(makeTestFolder(context), 's')
  const silent = createServer({ allowHalfOpen: true })
  await listenOnSocket(silent, socketPath)
  const connected = once(silent, 'connection')
  const connection = new FeedConnection({ socketPath, timeoutMs: 60_000, signal: undefined })
  const [socket] = (await connected) as [Socket]
  context.after(() => {
    socket.destroy()
    silent.close()
  })
  const waiting = assert.rejects(connection.receive(), /was left/)
  let isClosed = false
  const closed = connection.close().then(() => {
    isClosed = true
  })
  await waiting
  assert.equal(isClosed, false, 'who waits is told at once')
  await closed
})
