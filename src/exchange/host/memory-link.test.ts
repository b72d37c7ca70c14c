import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setImmediate as yieldToSockets } from 'node:timers/promises'
import { openCodec } from '../../half/codec.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { SEGMENT_BYTES } from '../plan/layout.js'
import type { FrameHeader } from '../wire/frame.js'
import { MEMORY_SLOTS, openHostMemory, openPeerMemory } from './host-memory.js'
import { MemoryReader } from './memory-reader.js'
import { MemoryWriter } from './memory-writer.js'

const HEADER: FrameHeader = {
  ...{ rank: 0, epoch: 1, step: 0, bucket: 0, wireType: 'fp32', attempt: 0, scales: 0, hop: 0 },
  ...{ segment: 0, bytes: 64 },
}

/** One writer and two readers of its memory. */
async function openLink(context: TestContext) {
  const server = createServer()
  const port = await listenLocally(server)
  const memory = openHostMemory()
  const connectPeer = async () => {
    const dialled = connect(port, '127.0.0.1')
    const [accepted] = (await once(server, 'connection')) as [Socket]
    const opened = openPeerMemory(memory.path, 0)
    const acknowledge = () => void dialled.write('1')
    const codec = openCodec(SEGMENT_BYTES)
    const reader = new MemoryReader(codec, 0, { memory: opened, acknowledge })
    dialled.on('data', (bytes) => reader.push(bytes))
    const read = (address: number) => new Uint8Array(codec.memory, address, 64).slice()
    return { dialled, accepted, opened, reader, read }
  }
  const peers = [await connectPeer(), await connectPeer()]
  context.after(() => {
    for (const { dialled, accepted, opened } of peers) {
      dialled.destroy()
      accepted.destroy()
      opened.close()
    }
    memory.close()
    server.close()
  })
  const writer = new MemoryWriter(
    memory,
    peers.map(({ accepted }) => accepted),
  )
  return { writer, readers: peers.map(({ reader }) => reader), read: peers.map(({ read }) => read) }
}

test('a slot is written again only when every reader has read it', async (context) => {
  const { writer, readers, read } = await openLink(context)
  const frames = 3 * MEMORY_SLOTS
  const payload = (frame: number) => new Uint8Array(64).fill(frame + 1)
  for (let segment = 0; segment < frames; segment++) writer.send({ ...HEADER, segment }, payload(segment))
  // The first reader takes what it can before the second takes anything.
  for (let frame = 0; frame < MEMORY_SLOTS; frame++)
    assert.equal((await readers[0]!.next()).header.segment, frame)
  const ahead = readers[0]!.next()
  for (let turn = 0; turn < 20; turn++) await yieldToSockets()
  const rest = (async () => {
    assert.equal((await ahead).header.segment, MEMORY_SLOTS)
    for (let frame = MEMORY_SLOTS + 1; frame < frames; frame++) await readers[0]!.next()
  })()
  for (let frame = 0; frame < frames; frame++) {
    const { header, address } = await readers[1]!.next()
    assert.equal(header.segment, frame)
    assert.deepEqual(read[1]!(address), payload(frame))
  }
  await rest
})

test('who waits for a frame, or for a free slot, hears of a failure', async (context) => {
  const { writer, readers } = await openLink(context)
  for (let segment = 0; segment <= MEMORY_SLOTS; segment++)
    writer.send({ ...HEADER, segment }, new Uint8Array(64))
  const error = new Error('rank 0 is lost')
  const flushed = writer.flushed()
  writer.fail(error)
  await assert.rejects(flushed, error)
  for (let frame = 0; frame < MEMORY_SLOTS; frame++) await readers[0]!.next()
  const waiting = readers[0]!.next()
  readers[0]!.fail(error)
  await assert.rejects(waiting, error)
  await assert.rejects(readers[0]!.next(), error)
})

test('memory that cannot be opened is a mismatch that says what to do', () => {
  for (const path of ['/proc/self/fd/9999', '/proc/self/fd/0'])
    assert.throws(() => openPeerMemory(path, 3), {
      code: 'EXCHANGE_MISMATCH',
      message: /memory of rank 3 on this host cannot be opened .*"levels": 1/,
    })
})
