import { readSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { shuffleSamples } from './plan/order.js'
import { isIntact, openSampleReader, type SampleReader } from './samples/read-samples.js'
import { openSampleTable, type SampleTable } from './samples/sample-table.js'
import { writeFully } from './write-fully.js'

/** What a reader thread is started with. */
export interface ReaderData {
  readonly arenaFd: number
  /** Where the samples are; absent when the thread only copies and shuffles. */
  readonly folder?: { readonly root: string; readonly tableBytes: Uint8Array }
}

/** Work for a reader thread. `copy` carries bytes inside the arena. */
export type ReaderJob =
  | { readonly kind: 'read'; readonly samples: Uint32Array; readonly offsets: Float64Array }
  | {
      readonly kind: 'copy'
      readonly from: Float64Array
      readonly to: Float64Array
      readonly lengths: Float64Array
    }
  | { readonly kind: 'shuffle'; readonly sampleCount: number; readonly seed: number; readonly epoch: number }

/** `statuses`: 0 ok, 1 missing, 2 corrupt. */
export type ReaderResult =
  | { readonly kind: 'read'; readonly statuses: Uint8Array }
  | { readonly kind: 'copy' }
  | { readonly kind: 'shuffle'; readonly samples: Uint32Array }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }

/** Neighbouring samples go to the arena in one write of up to this many bytes. */
const GATHER_BYTES = 1 << 20

if (parentPort) serve(workerData as ReaderData)

function serve({ arenaFd, folder }: ReaderData): void {
  const table = folder && openSampleTable(folder.tableBytes)
  const reader = folder && table && openSampleReader(folder.root, table)
  const gather = Buffer.allocUnsafeSlow(GATHER_BYTES)
  parentPort!.on('message', ({ id, job }: { id: number; job: ReaderJob }) => {
    let result: ReaderResult
    try {
      result = run(job)
    } catch (error) {
      const { code = 'UNKNOWN', message } = error as NodeJS.ErrnoException
      result = { kind: 'failed', code, message }
    }
    const transfer = result.kind === 'shuffle' ? [result.samples.buffer as ArrayBuffer] : []
    parentPort!.postMessage({ id, result }, transfer)
  })

  function run(job: ReaderJob): ReaderResult {
    switch (job.kind) {
      case 'read':
        return { kind: 'read', statuses: readIntoArena(reader!, table!, job.samples, job.offsets) }
      case 'copy':
        for (let i = 0; i < job.from.length; i++) copyInArena(job.from[i]!, job.to[i]!, job.lengths[i]!)
        return { kind: 'copy' }
      case 'shuffle':
        return { kind: 'shuffle', samples: shuffleSamples(job) }
    }
  }

  function readIntoArena(
    from: SampleReader,
    table: SampleTable,
    samples: Uint32Array,
    offsets: Float64Array,
  ): Uint8Array {
    const statuses = new Uint8Array(samples.length)
    let start = 0
    let filled = 0
    const flush = () => {
      if (filled > 0) writeFully(arenaFd, gather.subarray(0, filled), start)
      filled = 0
    }
    from.readAll(samples, (i, bytes) => {
      if (!bytes) statuses[i] = 1
      else if (!isIntact(table, samples[i]!, bytes)) statuses[i] = 2
      if (!bytes || statuses[i] !== 0) return
      const at = offsets[i]!
      const gap = at - (start + filled)
      if (filled > 0 && (gap < 0 || gap >= 64 || filled + gap + bytes.length > GATHER_BYTES)) flush()
      if (bytes.length > GATHER_BYTES) return writeFully(arenaFd, bytes, at)
      if (filled === 0) start = at
      else filled += gap // alignment between neighbours; nobody reads it
      gather.set(bytes, filled)
      filled += bytes.length
    })
    flush()
    return statuses
  }

  function copyInArena(from: number, to: number, length: number): void {
    for (let done = 0; done < length; done += GATHER_BYTES) {
      const part = gather.subarray(0, Math.min(GATHER_BYTES, length - done))
      readSync(arenaFd, part, 0, part.length, from + done)
      writeFully(arenaFd, part, to + done)
    }
  }
}
