import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import type { SampleTable } from '../../samples/sample-table.js'
import type { RankStream } from '../stream/rank-stream.js'
import { parseHello, parseStart } from './hello.js'
import type { ServedRank } from './served-ranks.js'
import { SessionReading } from './session-reading.js'

function makeRank(stream: object): ServedRank {
  return {
    rank: 0,
    key: '',
    stream: stream as unknown as RankStream,
    run: undefined,
    opening: Promise.resolve(),
    clients: new Set(),
    skippedCount: 0,
  }
}

/** Makes one of a rank's two workers; `socket` receives everything the feed writes to it. */
function makeWorker(rank: ServedRank, worker: number) {
  const socket = new PassThrough()
  const reading = new SessionReading({
    socket: socket as never,
    hello: parseHello({ batch: 1, rank: 0, world: 1, worker, workers: 2 }),
    rank,
    table: {} as SampleTable,
    takeNotes: () => [],
    poisoned: undefined,
    probe: undefined,
    depth: 1,
    keep: 0,
  })
  return { socket, reading }
}

test('a worker joins the next pass on its connection after what it waited for was given up', async () => {
  const pending = Promise.withResolvers<never>()
  const rank = makeRank({
    start: async () => {},
    read: () => pending.promise,
    sequence: { batchesPerEpoch: 10 },
    meter: { stallMs: { client: 0 } },
  })
  const [first, late] = [makeWorker(rank, 0), makeWorker(rank, 1)]
  const [old, next] = ['a', 'b'].map((run, epoch) => parseStart({ epoch, step: 0, run }))
  for (const { reading } of [first, late]) await reading.start(old!)
  const granted = late.reading.grant(1)
  await first.reading.start(next!)
  pending.reject(new Error('given up'))
  await granted
  assert.match(String(late.socket.read()), /"epoch":0.*FEED_GONE/s)
  await late.reading.start(next!)
  assert.match(String(late.socket.read()), /"epoch":1/)
  assert.equal(late.socket.writableEnded, false)
  await late.reading.start(old!)
  assert.match(String(late.socket.read()), /"epoch":0.*FEED_GONE/s, 'it came late')
  assert.equal(rank.run?.name, 'b')
})

test('a worker that joins a run waits until the stream stands where the run begins', async () => {
  const moved = Promise.withResolvers<void>()
  const stream = { start: () => moved.promise }
  const rank = makeRank(stream)
  const start = parseStart({ epoch: 3, step: 0, run: 'a' })
  const workers = [0, 1].map((worker) => {
    const { socket, reading } = makeWorker(rank, worker)
    return { socket, begun: reading.start(start) }
  })
  await new Promise(setImmediate)
  assert.deepEqual(
    workers.map(({ socket }) => socket.readableLength),
    [0, 0],
  )
  moved.resolve()
  await Promise.all(workers.map(({ begun }) => begun))
  for (const { socket } of workers) {
    if (socket.readableLength === 0) await once(socket, 'readable')
    assert.match(String(socket.read()), /"epoch":3/)
  }
})
