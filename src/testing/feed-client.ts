import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { connect } from 'node:net'
import {
  formatSessionFrame,
  MESSAGE,
  parseBatch,
  readSessionFrames,
  type SessionFrame,
} from '../feed/session/wire.js'
import { openSampleTable } from '../samples/sample-table.js'

/** The identity of a test client, as in HELLO. */
export interface TestClientHello {
  readonly rank?: number
  readonly world?: number
  readonly replicate?: number
  readonly batch: number
  readonly last?: string
  readonly worker?: number
  readonly workers?: number
  readonly depth?: number
  readonly [name: string]: unknown
}

export interface ReceivedBatch {
  readonly epoch: number
  readonly step: number
  readonly ids: readonly number[]
  readonly isPadded: readonly boolean[]
  readonly data: readonly Buffer[]
}

/** A feed client that copies each batch out of the buffer before returning it. */
export interface TestFeedClient {
  readonly welcome: Welcome
  /** Notes from the feed to this client. */
  readonly notes: readonly string[]
  /** This client's batches from `epoch` and `step` on, until the end of the epoch. */
  read(start: { epoch?: number; step?: number; run?: string }): AsyncGenerator<ReceivedBatch>
  close(): void
}

interface Welcome {
  readonly arena: { readonly path: string }
  readonly table: { readonly path: string; readonly bytes: number }
  readonly mapped?: { readonly folder: string; readonly descriptors: readonly number[] }
  readonly [name: string]: unknown
}

/** The buffer, or the files with the samples. */
function openSamples({ arena, table, mapped }: Welcome) {
  if (!mapped) {
    const descriptor = openSync(arena.path, 'r')
    return { descriptorOf: () => descriptor, close: () => closeSync(descriptor) }
  }
  const { files } = openSampleTable(readFileSync(table.path).subarray(0, table.bytes))
  const open = mapped.descriptors.map((each) => openSync(`${mapped.folder}/${each}`, 'r'))
  return {
    descriptorOf: (id: number) => open[files[id]!]!,
    close() {
      for (const each of open) closeSync(each)
    },
  }
}

/** Connects to the feed at `socketPath`. Rejects, and `read` throws, with the text of the feed's ERROR. */
export async function openTestFeedClient(
  socketPath: string,
  hello: TestClientHello,
): Promise<TestFeedClient> {
  const socket = connect(socketPath)
  const frames: SessionFrame[] = []
  const notes: string[] = []
  let isEnded = false
  let wake = () => {}
  const reader = readSessionFrames('the feed', (frame) => {
    if (frame.type === MESSAGE.note) notes.push(String(frame.fields.message))
    else frames.push(frame)
  })
  socket.on('data', (chunk) => {
    reader.push(chunk)
    wake()
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    isEnded = true
    wake()
  })
  const receive = async (): Promise<SessionFrame> => {
    while (frames.length === 0) {
      if (isEnded) throw new Error(`the feed on ${socketPath} hung up`)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    const frame = frames.shift()!
    if (frame.type === MESSAGE.error) throw new Error(JSON.stringify(frame.fields))
    return frame
  }
  const send = (type: number, fields: object) => socket.write(formatSessionFrame(type, fields))
  send(MESSAGE.hello, { pid: process.pid, ...hello })
  const welcome = (await receive()).fields as unknown as Welcome
  const samples = openSamples(welcome)
  return {
    welcome,
    notes,
    async *read(start) {
      send(MESSAGE.start, start)
      while ((await receive()).type !== MESSAGE.started) {}
      send(MESSAGE.next, { count: hello.depth ?? 2 })
      for (;;) {
        const { type, payload } = await receive()
        if (type === MESSAGE.epochEnd) return
        const { seq, epoch, step, ids, offsets, lengths, flags } = parseBatch(payload)
        const data = offsets.map((at, i) => {
          const bytes = Buffer.alloc(lengths[i]!)
          readSync(samples.descriptorOf(ids[i]!), bytes, 0, bytes.length, at)
          return bytes
        })
        send(MESSAGE.release, { seq })
        send(MESSAGE.next, { count: 1 })
        yield { epoch, step, ids, isPadded: flags.map((flag) => flag === 1), data }
      }
    },
    close() {
      samples.close()
      socket.destroy()
    },
  }
}
