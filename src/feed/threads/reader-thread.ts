import { readSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { serveJobs } from '../../platform/job-threads.js'
import type { BytePath } from '../../samples/byte-path.js'
import { type FileFacts, measureFiles } from '../../samples/list-folder.js'
import { isIntact, SampleReader } from '../../samples/read-samples.js'
import { openSampleTable, type SampleTable } from '../../samples/sample-table.js'
import { allocateForCrc32 } from '../../wasm/crc32.js'
import { planArenaRuns, planExtentBytes } from '../arena/arena-runs.js'
import type { ArenaCopy } from '../arena/sample-arena.js'
import { writeFully } from '../arena/write-fully.js'
import { type MixPart, openMixedOrder } from '../plan/mix.js'
import { holdSamples, type OrderData, type OrderOptions } from '../plan/order.js'
import { type Prefix, type PrefixShare, planPrefix } from '../plan/prefix.js'

/** The data for a reader thread. */
export interface ReaderData {
  readonly arenaFd: number
  /** Location of the samples; absent if the thread only copies and shuffles. */
  readonly folder?: ReadFolder | undefined
}

interface ReadFolder {
  readonly root: string
  readonly tableBytes: Uint8Array
  /** See `SampleTable`. */
  readonly known?: Uint8Array | undefined
  readonly listedMs?: Float64Array | undefined
  /** Descriptors of the files, if clients map them. */
  readonly held?: readonly number[] | undefined
}

/** Work for a reader thread. `measure` needs no data yet; `copy` moves bytes inside the arena; `touch` reads samples that clients will map. */
export type ReaderJob =
  | { readonly kind: 'read'; readonly samples: Uint32Array; readonly offsets: Float64Array }
  | { readonly kind: 'touch'; readonly samples: Uint32Array }
  | { readonly kind: 'measure'; readonly root: BytePath; readonly paths: string }
  | (ArenaCopy & { readonly kind: 'copy' })
  | (Omit<OrderOptions, 'kind'> & { readonly kind: 'shuffle' })
  | {
      readonly kind: 'prefix'
      readonly visits: OrderData
      readonly mix: readonly MixPart[] | undefined
      /** Lengths of every sample of the dataset. */
      readonly lengths: Uint32Array
      readonly shares: readonly PrefixShare[]
    }

/** `statuses`: 0 ok, 1 missing, 2 corrupt. */
export type ReaderResult =
  | { readonly kind: 'read'; readonly statuses: Uint8Array }
  /** `isFromDisk`: some of the bytes were not in the kernel's memory. */
  | { readonly kind: 'touch'; readonly statuses: Uint8Array; readonly isFromDisk: boolean }
  | (FileFacts & { readonly kind: 'measure' })
  | { readonly kind: 'copy' }
  | { readonly kind: 'shuffle'; readonly samples: Uint32Array }
  | { readonly kind: 'prefix'; readonly prefix: Prefix }

/** Maximum bytes of one write of neighboring samples to the arena: half of a usual L2 cache. */
const RUN_BYTES = 512 * 1024

/** Bytes that a copy inside the arena moves at a time. */
const COPY_BYTES = 1 << 20

/** Runs the jobs of one thread. Bytes go through one buffer, which grows as needed. */
class JobRunner {
  readonly #arenaFd: number
  readonly #table: SampleTable | undefined
  readonly #reader: SampleReader | undefined
  #gather = allocateForCrc32(COPY_BYTES)

  constructor({ arenaFd, folder }: ReaderData) {
    this.#arenaFd = arenaFd
    this.#table = folder && {
      ...openSampleTable(folder.tableBytes),
      known: folder.known,
      listedMs: folder.listedMs,
    }
    this.#reader = folder && new SampleReader(folder.root, this.#table!, { held: folder.held })
  }

  run(job: Exclude<ReaderJob, { readonly kind: 'measure' }>): ReaderResult {
    switch (job.kind) {
      case 'read':
        return { kind: 'read', statuses: this.#readIntoArena(job) }
      case 'touch':
        return this.#touch(job.samples)
      case 'copy':
        for (let i = 0; i < job.from.length; i++) this.#copy(job.from[i]!, job.to[i]!, job.lengths[i]!)
        return { kind: 'copy' }
      case 'shuffle':
        return { kind: 'shuffle', samples: holdSamples(job) }
      case 'prefix':
        return { kind: 'prefix', prefix: findPrefix(job) }
    }
  }

  #readIntoArena({ samples, offsets }: Extract<ReaderJob, { kind: 'read' }>): Uint8Array {
    const table = this.#table!
    const statuses = new Uint8Array(samples.length)
    if (samples.length === 0) return statuses
    const runs = planArenaRuns(offsets, (i) => table.lengths[samples[i]!]!, RUN_BYTES)
    // A shard is read in its own order, which differs from the arena's, so all runs are filled before one is written.
    const groups = table.isSharded ? [runs] : runs.map((run) => [run])
    const places = new Float64Array(samples.length)
    for (const group of groups) {
      let filled = 0
      for (const run of group) {
        for (let i = run.first; i < run.first + run.count; i++) places[i] = filled + offsets[i]! - run.start
        filled += run.length
      }
      if (this.#gather.length < filled) this.#gather = allocateForCrc32(filled)
      const gather = this.#gather
      const first = group[0]!.first
      const count = group.reduce((sum, run) => sum + run.count, 0)
      const bytesOf = (i: number) => gather.subarray(places[i]!, places[i]! + table.lengths[samples[i]!]!)
      this.#reader!.readAll(samples.subarray(first, first + count), {
        place: (at) => bytesOf(first + at),
        done(at, isRead) {
          const i = first + at
          if (!isRead) statuses[i] = 1
          else if (!isIntact(table, samples[i]!, bytesOf(i))) statuses[i] = 2
        },
      })
      let written = 0
      for (const run of group) {
        writeFully(this.#arenaFd, gather.subarray(written, written + run.length), run.start)
        written += run.length
      }
    }
    return statuses
  }

  #touch(samples: Uint32Array): ReaderResult {
    const { lengths } = this.#table!
    const statuses = new Uint8Array(samples.length)
    const places = new Float64Array(samples.length)
    let filled = 0
    for (const [i, sample] of samples.entries()) {
      places[i] = filled
      filled += lengths[sample]!
    }
    if (this.#gather.length < filled) this.#gather = allocateForCrc32(filled)
    const bytesOf = (i: number) => this.#gather.subarray(places[i]!, places[i]! + lengths[samples[i]!]!)
    const before = process.resourceUsage().fsRead
    this.#reader!.readAll(samples, {
      place: bytesOf,
      done: (i, isRead) => {
        if (!isRead) statuses[i] = 1
        else if (!isIntact(this.#table!, samples[i]!, bytesOf(i))) statuses[i] = 2
      },
    })
    return { kind: 'touch', statuses, isFromDisk: process.resourceUsage().fsRead > before }
  }

  #copy(from: number, to: number, length: number): void {
    for (let done = 0; done < length; done += COPY_BYTES) {
      const part = this.#gather.subarray(0, Math.min(COPY_BYTES, length - done))
      readSync(this.#arenaFd, part, 0, part.length, from + done)
      writeFully(this.#arenaFd, part, to + done)
    }
  }
}

function findPrefix(job: Extract<ReaderJob, { kind: 'prefix' }>): Prefix {
  const { lengths } = job
  return planPrefix({
    order: openMixedOrder(job.visits, job.mix),
    sampleCount: lengths.length,
    shares: job.shares,
    extentBytesOf: (sample) => planExtentBytes(lengths[sample]!),
  })
}

let runner: JobRunner | undefined
const run = (job: ReaderJob): ReaderResult =>
  job.kind === 'measure' ? { kind: 'measure', ...measureFiles(job.root, job.paths) } : runner!.run(job)
serveJobs<ReaderJob, ReaderResult, ReaderData>(parentPort, run, {
  onWord(data) {
    runner = new JobRunner(data)
  },
})
