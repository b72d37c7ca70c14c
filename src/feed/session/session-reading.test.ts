import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import type { SampleTable } from '../samples/sample-table.js'
import type { RankStream } from '../stream/rank-stream.js'
import { parseHello, parseStart } from './hello.js'
import type { ServedRank } from './served-ranks.js'
import { SessionReading } from './session-reading.js'
import { SESSION_PROTOCOL } from './wire.js'

test('a worker that joins a run waits until the stream stands where the run begins', async () => {
  const moved = Promise.withResolvers<void>()
  const stream = { start: () => moved.promise } as unknown as RankStream
  const rank: ServedRank = {
    rank: 0,
    key: '',
    stream,
    run: undefined,
    opening: Promise.resolve(),
    clients: new Set(),
    skippedCount: 0,
  }
  const start = parseStart({ epoch: 3, step: 0, run: 'a' })
  const workers = [0, 1].map((worker) => {
    const socket = new PassThrough()
    const hello = parseHello({ proto: SESSION_PROTOCOL, batch: 1, rank: 0, world: 1, worker, workers: 2 })
    const table = {} as SampleTable
    const reading = new SessionReading({
      socket: socket as never,
      hello,
      rank,
      table,
      takeNotes: () => [],
      poisoned: undefined,
      probe: undefined,
      depth: 1,
      keep: 0,
    })
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
