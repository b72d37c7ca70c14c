import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { SendRule } from '../../platform/send-rule.js'
import { SampleReader } from '../../samples/read-samples.js'
import { openSampleTable, type SampleTable } from '../../samples/sample-table.js'
import { ITEM_BYTES, ITEM_STATUS, ITEMS_AT, ITEMS_FRAME_BYTES, writeItemsStart } from './storage-wire.js'

/** Start data of a storage thread. */
export interface StorageThreadData {
  readonly root: string
  readonly tableBytes: Uint8Array
  /** Absent: everything the table names may be sent. */
  readonly rule?: SendRule | undefined
}

/** Bytes of a connection's frames to read before its socket has taken them; beyond that, its jobs wait. */
const WINDOW_BYTES = 4 * 2 ** 20

/** One batch to read. Every frame of the answer repeats `owner` and `request`. */
export interface StorageJob {
  readonly owner: number
  readonly request: number
  readonly samples: Uint32Array
  readonly maxBytes: number
}

/** Messages to a storage thread. A recycled frame has been sent, or is no longer wanted. */
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

/** A job with `at` samples done. */
interface RunningJob extends StorageJob {
  at: number
  payloadBytes: number
  sent: number
}

/**
 * Works through jobs one frame at a time: always the oldest job whose connection still takes data. It handles messages
 * between two frames, so a canceled job ends there.
 */
class JobReader {
  readonly #table: SampleTable
  readonly #reader: SampleReader
  readonly #port: MessagePort
  readonly #spare: ArrayBuffer[] = []
  #jobs: RunningJob[] = []
  /** Owner → bytes of frames that its socket has not taken yet. */
  readonly #unsent = new Map<number, number>()
  #isRunning = false

  constructor({ root, tableBytes, rule }: StorageThreadData, port: MessagePort) {
    this.#table = openSampleTable(tableBytes)
    this.#reader = new SampleReader(root, this.#table, { rule })
    this.#port = port
  }

  take(order: StorageOrder): void {
    if (order.kind === 'job') this.#start(order)
    else if (order.kind === 'recycled') this.#recycle(order)
    else {
      const { owner, request } = order
      this.#jobs = this.#jobs.filter(
        (job) => job.owner !== owner || (request !== undefined && job.request !== request),
      )
    }
    if (!this.#isRunning) this.#run()
  }

  #start({ owner, request, maxBytes, samples }: StorageJob): void {
    const rest = this.#reader.inReadOrder(samples.subarray(1))
    if (samples.length > 1) samples.set(rest, 1) // the missed sample stays first
    this.#jobs.push({ owner, request, maxBytes, samples, at: 0, payloadBytes: 0, sent: 0 })
  }

  #recycle({ owner, frame, length }: Extract<StorageOrder, { kind: 'recycled' }>): void {
    const left = (this.#unsent.get(owner) ?? 0) - length
    if (left > 0) this.#unsent.set(owner, left)
    else this.#unsent.delete(owner)
    if (frame.byteLength === ITEMS_FRAME_BYTES && this.#spare.length < 16) this.#spare.push(frame)
  }

  #run(): void {
    const job = this.#jobs.find(({ owner }) => (this.#unsent.get(owner) ?? 0) < WINDOW_BYTES)
    this.#isRunning = job !== undefined
    if (!job) return
    if (job.at < job.samples.length) this.#sendFrame(job)
    if (job.at === job.samples.length) {
      const { owner, request, sent } = job
      this.#jobs.splice(this.#jobs.indexOf(job), 1)
      this.#port.postMessage({ kind: 'end', owner, request, sent } satisfies StorageReply)
    }
    setImmediate(() => this.#run())
  }

  /** Sends as many samples as fill a frame, or a single one that is larger. */
  #sendFrame(job: RunningJob): void {
    const { owner, request, samples } = job
    const { end, bytes } = this.#nextOf(job)
    const reused = bytes <= ITEMS_FRAME_BYTES ? this.#spare.pop() : undefined
    const buffer = reused ?? new ArrayBuffer(Math.max(ITEMS_FRAME_BYTES, bytes))
    const items = new ItemWriter(Buffer.from(buffer), this.#table)
    const first = job.at === 0 ? 1 : job.at
    this.#read(job, samples.subarray(job.at, first), items) // the missed sample leaves first
    this.#read(job, samples.subarray(first, end), items)
    job.sent += end - job.at
    job.at = end
    const length = items.finish(request)
    this.#unsent.set(owner, (this.#unsent.get(owner) ?? 0) + length)
    const reply: StorageReply = { kind: 'frame', owner, request, frame: buffer, length }
    this.#port.postMessage(reply, [buffer])
  }

  /** Returns the end of the next frame's samples, and the bytes that the frame needs. */
  #nextOf({ samples, at }: RunningJob): { readonly end: number; readonly bytes: number } {
    let bytes = ITEMS_AT
    let end = at
    for (; end < samples.length; end++) {
      const needed = ITEM_BYTES + this.#table.lengths[samples[end]!]!
      if (end > at && bytes + needed > ITEMS_FRAME_BYTES) break
      bytes += needed
    }
    return { end, bytes }
  }

  #read(job: RunningJob, part: Uint32Array, items: ItemWriter): void {
    const { lengths } = this.#table
    this.#reader.readAll(part, {
      place(i) {
        const length = lengths[part[i]!]!
        if (job.payloadBytes === 0 || job.payloadBytes + length <= job.maxBytes) return items.open(part[i]!)
        items.addEmpty(part[i]!, ITEM_STATUS.notSent)
        return undefined
      },
      done(i, isRead) {
        if (isRead) job.payloadBytes += items.keep()
        else items.addEmpty(part[i]!, ITEM_STATUS.missing)
      },
    })
  }
}

/** Fills one ITEMS frame. */
class ItemWriter {
  readonly #frame: Buffer
  readonly #table: SampleTable
  #filled = ITEMS_AT
  #openSample = 0

  constructor(frame: Buffer, table: SampleTable) {
    this.#frame = frame
    this.#table = table
  }

  /** Returns room for the bytes of a sample, which counts only after `keep`. */
  open(sample: number): Uint8Array {
    const start = this.#filled + ITEM_BYTES
    this.#openSample = sample
    return this.#frame.subarray(start, start + this.#table.lengths[sample]!)
  }

  /** Keeps the sample opened last. Returns its length. */
  keep(): number {
    const length = this.#table.lengths[this.#openSample]!
    this.#addHead(this.#openSample, ITEM_STATUS.ok, length)
    this.#filled += length
    return length
  }

  addEmpty(sample: number, status: number): void {
    this.#addHead(sample, status, 0)
  }

  /** Writes the frame's start and head. Returns the length of the frame. */
  finish(request: number): number {
    writeItemsStart(this.#frame, request, this.#filled - ITEMS_AT)
    return this.#filled
  }

  #addHead(sample: number, status: number, length: number): void {
    this.#frame.writeUInt32LE(sample, this.#filled)
    this.#frame.writeUInt32LE(0, this.#filled + 4)
    this.#frame[this.#filled + 8] = status
    this.#frame.writeUInt32LE(length, this.#filled + 9)
    this.#frame.writeUInt32LE(this.#table.crcs[sample] ?? 0, this.#filled + 13)
    this.#filled += ITEM_BYTES
  }
}

if (parentPort) {
  const port = parentPort
  const reader = new JobReader(workerData as StorageThreadData, port)
  port.on('message', (order: StorageOrder) => reader.take(order))
}
