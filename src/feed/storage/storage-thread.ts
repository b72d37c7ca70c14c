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
    /** Adds the head of an item to the frame at hand, or to a new one; its bytes follow. */
    const addHead = (sample: number, status: number, length: number) => {
      const needed = ITEM_BYTES + length
      if (frame && filled + needed > frame.length) flush()
      if (!frame) {
        const size = Math.max(ITEMS_FRAME_BYTES, HEADER_BYTES + needed)
        const reused = size === ITEMS_FRAME_BYTES ? spare.pop() : undefined
        frame = Buffer.from(reused ?? new ArrayBuffer(size))
      }
      frame.writeUInt32LE(sample, filled)
      frame.writeUInt32LE(0, filled + 4)
      frame[filled + 8] = status
      frame.writeUInt32LE(length, filled + 9)
      frame.writeUInt32LE(table.crcs[sample] ?? 0, filled + 13)
      filled += ITEM_BYTES
      sent++
    }
    const take = (samples: Uint32Array) =>
      reader.readAll(samples, {
        place(i) {
          const length = table.lengths[samples[i]!]!
          if (payloadBytes > 0 && payloadBytes + length > job.maxBytes) {
            addHead(samples[i]!, ITEM_STATUS.notSent, 0)
            return undefined
          }
          addHead(samples[i]!, ITEM_STATUS.ok, length)
          return frame!.subarray(filled, filled + length)
        },
        done(i, isRead) {
          const length = table.lengths[samples[i]!]!
          if (isRead) {
            filled += length
            payloadBytes += length
            return
          }
          filled -= ITEM_BYTES
          sent--
          addHead(samples[i]!, ITEM_STATUS.missing, 0)
        },
      })
    take(job.samples.subarray(0, 1)) // the missed sample leaves first
    take(job.samples.subarray(1))
    flush()
    port.postMessage({ kind: 'end', owner, request, sent } satisfies StorageReply)
  }
}
