import type { SampleTable } from '../../samples/sample-table.js'
import { DEFAULT_MEMORY_BYTES } from '../plan/arena-budget.js'
import type { ReaderPool } from '../threads/reader-pool.js'

/** Bytes that one thread reads at a time, so that threads share a batch. */
const PART_BYTES = 1 << 20

/** While all pages are in memory, one batch in this many is read to check that they still are. */
const PROBED_BATCHES = 32

interface PageTouchOptions {
  readonly table: SampleTable
  readonly pool: ReaderPool
  readonly memoryBytes: number | undefined
}

/**
 * Reads samples in threads, ahead of the clients that will map them, so that their pages are in memory: a client that
 * touched a page on the disk would stall, and one on a damaged disk would be killed. It reads each sample and compares
 * its checksum when it is fed for the first time, and afterwards only probes. Once a probe came from the disk, memory
 * is too short to keep all pages, so it reads everything ahead until a batch does not come from the disk.
 */
export class PageTouch {
  /** Maximum bytes to read ahead of the clients of all ranks. */
  readonly memoryBytes: number
  readonly #options: PageTouchOptions
  /** One bit for each sample that was read and is intact. */
  readonly #seen: Uint8Array
  #areKept = true
  #untilProbe = PROBED_BATCHES
  #readBytes = 0

  constructor(options: PageTouchOptions) {
    this.#options = options
    this.memoryBytes = options.memoryBytes ?? DEFAULT_MEMORY_BYTES
    this.#seen = new Uint8Array(Math.ceil(options.table.count / 8))
  }

  counters(): Readonly<Record<string, number>> {
    return { mapped_read_bytes: this.#readBytes }
  }

  /**
   * Reads samples of one batch if due. Resolves with a status for each (0 ok, 1 missing, 2 corrupt); undefined if no
   * read is needed.
   */
  touch(samples: Uint32Array): Promise<Uint8Array> | undefined {
    const isKnown = samples.every((sample) => this.#isSeen(sample))
    if (isKnown && this.#areKept && --this.#untilProbe > 0) return undefined
    this.#untilProbe = PROBED_BATCHES
    return this.#read(samples, isKnown)
  }

  async #read(samples: Uint32Array, isKnown: boolean): Promise<Uint8Array> {
    const { lengths } = this.#options.table
    const statuses = new Uint8Array(samples.length)
    const parts: Promise<void>[] = []
    let isFromDisk = false
    for (let start = 0, end = 0; start < samples.length; start = end) {
      for (let bytes = 0; end < samples.length && bytes < PART_BYTES; end++) bytes += lengths[samples[end]!]!
      const [first, part] = [start, samples.slice(start, end)]
      const read = this.#options.pool.run({ kind: 'touch', samples: part }).then((result) => {
        if (result.kind !== 'touch') throw new Error('a reader thread answered another question')
        statuses.set(result.statuses, first)
        isFromDisk ||= result.isFromDisk
      })
      parts.push(read)
    }
    const failed = (await Promise.allSettled(parts)).find((each) => each.status === 'rejected')
    if (failed) throw failed.reason
    if (isKnown) this.#areKept = !isFromDisk
    for (const [i, status] of statuses.entries()) if (status === 0) this.#see(samples[i]!)
    this.#readBytes += samples.reduce((sum, sample) => sum + lengths[sample]!, 0)
    return statuses
  }

  #isSeen(sample: number): boolean {
    return (this.#seen[sample >> 3]! & (1 << (sample & 7))) !== 0
  }

  #see(sample: number): void {
    this.#seen[sample >> 3]! |= 1 << (sample & 7)
  }
}
