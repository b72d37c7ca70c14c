import { parentPort, workerData } from 'node:worker_threads'
import { openSampleReader } from '../samples/read-samples.js'
import { openSampleTable } from '../samples/sample-table.js'
import {
  HEADER_BYTES,
  ITEM_BYTES,
  ITEM_STATUS,
  ITEMS_FRAME_BYTES,
  STORAGE_MESSAGE,
  writeHeader,
} from './storage-wire.js'

/** What a storage thread is started with. */
export interface StorageThreadData {
  readonly root: string
  readonly tableBytes: Uint8Array
}

/** One batch to read. `owner` and `request` come back with every frame. */
export interface StorageJob {
  readonly owner: number
  readonly request: number
  readonly samples: Uint32Array
  readonly maxBytes: number
}

/** A complete frame to send (the first `length` bytes of `frame`), or the end of the job. */
export type StorageReply =
  | {
      readonly kind: 'frame'
      readonly owner: number
      readonly request: number
      readonly frame: ArrayBuffer
      readonly length: number
    }
  | { readonly kind: 'end'; readonly owner: number; readonly request: number; readonly sent: number }

if (parentPort) serve(workerData as StorageThreadData)

function serve({ root, tableBytes }: StorageThreadData): void {
  const port = parentPort!
  const table = openSampleTable(tableBytes)
  const reader = openSampleReader(root, table)
  const spare: ArrayBuffer[] = []
  port.on('message', (message: StorageJob | { readonly recycled: ArrayBuffer }) => {
    if ('recycled' in message) {
      if (spare.length < 16) spare.push(message.recycled)
    } else answer(message)
  })

  function answer(job: StorageJob): void {
    const { owner, request } = job
    let frame: Buffer | undefined
    let filled = HEADER_BYTES
    let payloadBytes = 0
    let sent = 0
    const flush = () => {
      if (!frame || filled === HEADER_BYTES) return
      writeHeader(frame, { type: STORAGE_MESSAGE.items, request, length: filled - HEADER_BYTES })
      const buffer = frame.buffer as ArrayBuffer
      port.postMessage(
        { kind: 'frame', owner, request, frame: buffer, length: filled } satisfies StorageReply,
        [buffer],
      )
      frame = undefined
      filled = HEADER_BYTES
    }
    const add = (sample: number, status: number, bytes: Uint8Array) => {
      const needed = ITEM_BYTES + bytes.length
      if (frame && filled + needed > frame.length) flush()
      if (!frame) {
        const size = Math.max(ITEMS_FRAME_BYTES, HEADER_BYTES + needed)
        const reused = size === ITEMS_FRAME_BYTES ? spare.pop() : undefined
        frame = Buffer.from(reused ?? new ArrayBuffer(size))
      }
      frame.writeUInt32LE(sample, filled)
      frame.writeUInt32LE(0, filled + 4)
      frame[filled + 8] = status
      frame.writeUInt32LE(bytes.length, filled + 9)
      frame.writeUInt32LE(table.crcs[sample] ?? 0, filled + 13)
      frame.set(bytes, filled + ITEM_BYTES)
      filled += needed
      sent++
    }
    const none = new Uint8Array()
    const take = (samples: Uint32Array) =>
      reader.readAll(samples, (i, bytes) => {
        const sample = samples[i]!
        if (!bytes) return add(sample, ITEM_STATUS.missing, none)
        if (payloadBytes > 0 && payloadBytes + bytes.length > job.maxBytes)
          return add(sample, ITEM_STATUS.notSent, none)
        payloadBytes += bytes.length
        add(sample, ITEM_STATUS.ok, bytes)
      })
    take(job.samples.subarray(0, 1)) // the missed sample leaves first
    take(job.samples.subarray(1))
    flush()
    port.postMessage({ kind: 'end', owner, request, sent } satisfies StorageReply)
  }
}
