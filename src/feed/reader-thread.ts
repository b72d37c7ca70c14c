import { readSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { planArenaRuns } from './plan/arena-runs.js'
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

/** Neighbouring samples go to the arena in one write of up to this many bytes: half of a usual L2 cache. */
const RUN_BYTES = 512 * 1024

/** Bytes that a copy inside the arena carries at a time. */
const COPY_BYTES = 1 << 20

if (parentPort) serve(workerData as ReaderData)

function serve({ arenaFd, folder }: ReaderData): void {
  const table = folder && openSampleTable(folder.tableBytes)
  const reader = folder && table && openSampleReader(folder.root, table)
  let gather = Buffer.allocUnsafeSlow(COPY_BYTES)
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
    if (samples.length === 0) return statuses
    const runs = planArenaRuns(offsets, (i) => table.lengths[samples[i]!]!, RUN_BYTES)
    // A shard is read in its own order, which is not that of the arena, so all runs are filled before one is written.
    const groups = table.format === 'file' ? runs.map((run) => [run]) : [runs]
    const places = new Float64Array(samples.length)
    for (const group of groups) {
      let filled = 0
      for (const run of group) {
        for (let i = run.first; i < run.first + run.count; i++) places[i] = filled + offsets[i]! - run.start
        filled += run.length
      }
      if (gather.length < filled) gather = Buffer.allocUnsafeSlow(filled)
      const first = group[0]!.first
      const count = group.reduce((sum, run) => sum + run.count, 0)
      const bytesOf = (i: number) => gather.subarray(places[i]!, places[i]! + table.lengths[samples[i]!]!)
      from.readAll(samples.subarray(first, first + count), {
        place: (at) => bytesOf(first + at),
        done(at, isRead) {
          const i = first + at
          if (!isRead) statuses[i] = 1
          else if (!isIntact(table, samples[i]!, bytesOf(i))) statuses[i] = 2
        },
      })
      let written = 0
      for (const run of group) {
        writeFully(arenaFd, gather.subarray(written, written + run.length), run.start)
        written += run.length
      }
    }
    return statuses
  }

  function copyInArena(from: number, to: number, length: number): void {
    for (let done = 0; done < length; done += COPY_BYTES) {
      const part = gather.subarray(0, Math.min(COPY_BYTES, length - done))
      readSync(arenaFd, part, 0, part.length, from + done)
      writeFully(arenaFd, part, to + done)
    }
  }
}
