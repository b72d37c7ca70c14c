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

/** Bytes of one connection's frames that are read before the socket has taken them; its jobs wait then. */
const WINDOW_BYTES = 4 * 2 ** 20

/** One batch to read. `owner` and `request` come back with every frame. */
export interface StorageJob {
  readonly owner: number
  readonly request: number
  readonly samples: Uint32Array
  readonly maxBytes: number
}

/** What a storage thread is told. A recycled frame has been sent, or is no longer wanted. */
export type StorageOrder =
  | ({ readonly kind: 'job' } & StorageJob)
  | {
      readonly kind: 'recycled'
      readonly owner: number
      readonly frame: ArrayBuffer
      readonly length: number
    }
  /** Without `request`: all jobs of `owner`. */
  | { readonly kind: 'cancel'; readonly owner: number; readonly request?: number }

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

/** A job of which `at` samples are done. */
interface RunningJob extends StorageJob {
  at: number
  payloadBytes: number
  sent: number
}

if (parentPort) serve(workerData as StorageThreadData)

/**
 * Works off jobs a frame at a time, the oldest first whose connection takes what it is sent. Between two frames it
 * listens, so that a job that is cancelled ends there.
 */
function serve({ root, tableBytes }: StorageThreadData): void {
  const port = parentPort!
  const table = openSampleTable(tableBytes)
  const reader = openSampleReader(root, table)
  const spare: ArrayBuffer[] = []
  const jobs: RunningJob[] = []
  /** Owner → bytes of frames that its socket has not taken yet. */
  const unsent = new Map<number, number>()
  let isRunning = false

  port.on('message', (order: StorageOrder) => {
    if (order.kind === 'job') {
      const { owner, request, maxBytes, samples } = order
      const rest = reader.inReadOrder(samples.subarray(1))
      if (samples.length > 1) samples.set(rest, 1) // the missed sample stays the first
      jobs.push({ owner, request, maxBytes, samples, at: 0, payloadBytes: 0, sent: 0 })
    } else if (order.kind === 'recycled') {
      const { owner, frame, length } = order
      const left = (unsent.get(owner) ?? 0) - length
      if (left > 0) unsent.set(owner, left)
      else unsent.delete(owner)
      if (frame.byteLength === ITEMS_FRAME_BYTES && spare.length < 16) spare.push(frame)
    } else {
      const { owner, request } = order
      const isKept = (job: RunningJob) =>
        job.owner !== owner || (request !== undefined && job.request !== request)
      jobs.splice(0, jobs.length, ...jobs.filter(isKept))
    }
    if (!isRunning) run()
  })

  function run(): void {
    const at = jobs.findIndex(({ owner }) => (unsent.get(owner) ?? 0) < WINDOW_BYTES)
    const job = jobs[at]
    isRunning = job !== undefined
    if (!job) return
    if (job.at < job.samples.length) sendFrame(job)
    if (job.at === job.samples.length) {
      const { owner, request, sent } = job
      jobs.splice(at, 1)
      port.postMessage({ kind: 'end', owner, request, sent } satisfies StorageReply)
    }
    setImmediate(run)
  }

  /** Sends as many samples as fill a frame, or the one that is larger than it. */
  function sendFrame(job: RunningJob): void {
    const { owner, request, samples } = job
    let size = HEADER_BYTES
    let end = job.at
    for (; end < samples.length; end++) {
      const needed = ITEM_BYTES + table.lengths[samples[end]!]!
      if (end > job.at && size + needed > ITEMS_FRAME_BYTES) break
      size += needed
    }
    const reused = size <= ITEMS_FRAME_BYTES ? spare.pop() : undefined
    const buffer = reused ?? new ArrayBuffer(Math.max(ITEMS_FRAME_BYTES, size))
    const frame = Buffer.from(buffer)
    let filled = HEADER_BYTES
    const addHead = (sample: number, status: number, length: number) => {
      frame.writeUInt32LE(sample, filled)
      frame.writeUInt32LE(0, filled + 4)
      frame[filled + 8] = status
      frame.writeUInt32LE(length, filled + 9)
      frame.writeUInt32LE(table.crcs[sample] ?? 0, filled + 13)
      filled += ITEM_BYTES
    }
    const take = (part: Uint32Array) =>
      reader.readAll(part, {
        place(i) {
          const length = table.lengths[part[i]!]!
          if (job.payloadBytes > 0 && job.payloadBytes + length > job.maxBytes) {
            addHead(part[i]!, ITEM_STATUS.notSent, 0)
            return undefined
          }
          addHead(part[i]!, ITEM_STATUS.ok, length)
          return frame.subarray(filled, filled + length)
        },
        done(i, isRead) {
          const length = table.lengths[part[i]!]!
          if (isRead) {
            filled += length
            job.payloadBytes += length
            return
          }
          filled -= ITEM_BYTES
          addHead(part[i]!, ITEM_STATUS.missing, 0)
        },
      })
    const first = job.at === 0 ? 1 : job.at
    take(samples.subarray(job.at, first)) // the missed sample leaves first
    take(samples.subarray(first, end))
    job.sent += end - job.at
    job.at = end
    writeHeader(frame, { type: STORAGE_MESSAGE.items, request, length: filled - HEADER_BYTES })
    unsent.set(owner, (unsent.get(owner) ?? 0) + filled)
    const reply: StorageReply = { kind: 'frame', owner, request, frame: buffer, length: filled }
    port.postMessage(reply, [buffer])
  }
}
